"""The whole: its parts lie in five folders of a checkout, and in one of an installation"""

from pkgutil import extend_path

__version__ = "0.1.0"
"""The one place of it: what is built, installed and printed takes it from here."""

# In place: the module's spec has the same list, and who draws up the imports reads it there.
__path__[:] = extend_path(__path__, __name__)
