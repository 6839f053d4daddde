"""For code written against tornasole, smdebug's first form: everything here is smdebug's."""

from smdebug.mode_keys import ModeKeys as modes

__all__ = ["modes"]
