"""Makes links of the names of the library, wherever they are set as code.

The pages are Markdown that is read elsewhere, too, and docstrings are read in
editors: `ln_tfp.nll` or `LogisticNormalHead` is all that they write.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import post_transforms

_HOMES = ('ln_tfp', 'ln_tfp.losses', 'ln_tfp.audit', 'ln_tfp.process')


class Links(post_transforms.SphinxPostTransform):
  """Replaces literals that are names in the reference by references."""

  default_priority = 5  # before references are resolved

  def run(self, **kwargs):
    objects = self.env.domains['py'].objects
    for literal in list(self.document.findall(nodes.literal)):
      if isinstance(literal.parent, (
          nodes.reference, nodes.title, addnodes.pending_xref)):
        continue
      name = _find(literal.astext(), objects)
      if name:
        link = addnodes.pending_xref(
            '', literal.deepcopy(), refdomain='py', reftype='obj',
            reftarget=name, refexplicit=True, refdoc=self.env.docname)
        literal.replace_self(link)


def _find(text, objects):
  """Returns the full name of what the text of a literal calls."""
  name = re.sub(r'\(.*\)$', '', text, flags=re.S)
  if name in objects:
    return name
  # A single lower-case word is more often an argument or a variable.
  if re.fullmatch(r'\w+(\.\w+)?', name) and re.search('[A-Z_]', name[1:]):
    return next((f'{home}.{name}' for home in _HOMES
                 if f'{home}.{name}' in objects), None)
  return None


def setup(app):
  app.add_post_transform(Links)
  return {'parallel_read_safe': True}
