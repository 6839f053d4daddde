"""For code written against tornasole, the first name of smdebug: every module imports from smdebug."""

from smdebug.mode_keys import ModeKeys as modes

__all__ = ["modes"]
