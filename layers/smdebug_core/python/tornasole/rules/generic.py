"""For code written against tornasole: the built-in rules of `smdebug.rules.generic`."""

from typing import Any

from smdebug.rules import generic


def __getattr__(name: str) -> Any:
    return getattr(generic, name)


def __dir__() -> list[str]:
    return dir(generic)
