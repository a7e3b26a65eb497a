"""The version of the package; setup.py reads it here."""

__version__ = '0.1.0'
