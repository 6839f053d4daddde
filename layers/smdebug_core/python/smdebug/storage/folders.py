"""The folders directly below a prefix, without a listing of everything inside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from smdebug.storage.base import Storage

_AFTER_ALL = "\U0010ffff"  # sorts after every name


@runtime_checkable
class ListsFolders(Protocol):
    """A storage that lists folders by itself, with one request for many of them."""

    def folders(self, prefix: str) -> Iterator[str]:
        """Names of the folders directly below `prefix`, which is empty or ends in `/`, in order."""


def folders_in(storage: Storage, prefix: str = "") -> Iterator[str]:
    """Yield the names of the folders directly below `prefix`, which is empty or ends in `/`."""
    if isinstance(storage, ListsFolders):
        yield from storage.folders(prefix)
        return
    after: str | None = None
    while (key := next(iter(storage.list(prefix, after)), None)) is not None:
        name, slash, _ = key.removeprefix(prefix).partition("/")
        after = f"{prefix}{name}/{_AFTER_ALL}" if slash else prefix + name
        if slash:
            yield name
