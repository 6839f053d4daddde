"""For code written against tornasole: `from tornasole_rules import modes`."""

from smdebug.mode_keys import ModeKeys as modes  # noqa: N813

__all__ = ["modes"]
