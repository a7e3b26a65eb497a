"""How Sphinx makes the site of these pages: `make docs`.

Everything that a page needs is in the site: it works without a network, from a
server or from the disk.
"""

import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parent), str(_HERE / '_ext')]
# Nothing is computed: the library is imported for its docstrings.
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')

from sphinx.util import inspect  # noqa: E402

import ln_tfp  # noqa: E402

project = 'ln_tfp'
version = release = ln_tfp.__version__
extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.napoleon',
    'markdown_docstrings',
    'api_links',
]
exclude_patterns = ['_ext']

# The pages are read on the site and as they are, in the repository.
myst_heading_anchors = 3

autosummary_generate = False  # the pages of the reference are written by hand
autoclass_content = 'both'
autodoc_inherit_docstrings = False  # Keras's methods are documented by Keras
autodoc_member_order = 'bysource'
autodoc_typehints = 'description'
autodoc_typehints_description_target = 'documented_params'
autodoc_typehints_format = 'short'
napoleon_numpy_docstring = False
# Not directives of their own: some are properties, which have theirs.
napoleon_custom_sections = [('Attributes', 'params_style')]
napoleon_use_rtype = False
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
toc_object_entries_show_parents = 'hide'

html_theme = 'pydata_sphinx_theme'
html_title = 'ln_tfp'
html_static_path = ['_static']
html_css_files = ['site.css']
html_favicon = '_static/icon.svg'
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
# It would fetch the pages that were found, which a browser refuses from disk.
html_show_search_summary = False
# As the reader's browser has it; unsaid, the theme complains in the console.
html_context = {'default_mode': 'auto'}
html_theme_options = {
    'navigation_with_keys': False,
    'secondary_sidebar_items': ['page-toc'],
    'footer_start': [],
    'footer_end': ['sphinx-version'],
}


def _signature(app, what, name, obj, options, signature, returns):
  """Of a class that of its `__init__`: Keras's `__new__` takes anything."""
  if what == 'class' and signature == '(*args, **kwargs)':
    signature = inspect.stringify_signature(
        inspect.signature(obj.__init__, bound_method=True),
        show_annotation=False)
  return signature, returns


def setup(app):
  app.connect('autodoc-process-signature', _signature)
