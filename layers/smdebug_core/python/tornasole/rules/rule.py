"""For code written against tornasole: the base class of rules is `smdebug.rules.Rule`."""

from smdebug.rules.rule import Rule

__all__ = ["Rule"]
