"""Pillow, which nothing but pictures needs."""


def load():
  """Returns the module `PIL` with what pictures need of it.

  Raises:
    ModuleNotFoundError: if Pillow is not installed.
  """
  try:
    import PIL.Image
    import PIL.ImageOps
  except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'Pictures need Pillow: pip install pillow.') from error
  return PIL
