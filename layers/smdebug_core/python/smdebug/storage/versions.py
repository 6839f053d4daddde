"""Objects with what changes when they are written anew: a listing says whether a copy is still the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable


class Version(NamedTuple):
    """An object as a listing shows it. Written anew, it has another tag."""

    key: str
    size: int
    tag: str


@runtime_checkable
class ListsVersions(Protocol):
    """A storage that lists versions with as few requests as keys."""

    def versions(self, prefix: str) -> Iterator[Version]:
        """The objects whose keys begin with `prefix`, in the order of `list`."""
