"""How the items of the step index are read: one by its key, or a range of sort keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

Item = dict[str, Any]


@dataclass(frozen=True)
class KeyRange:
    """The sort keys of one partition from `first` to `last`, both included."""

    pk: str
    first: str = ""
    last: str | None = None
    limit: int | None = None  # the most items to read
    newest_first: bool = False


class ItemReader(Protocol):
    """A table of items under a partition key `pk` and a sort key `sk`. Reads see every earlier write.

    Implementations inherit `query`, whose arguments are declared here only.
    """

    def get(self, pk: str, sk: str) -> Item | None:
        """Return the item, or None."""

    def read_range(self, keys: KeyRange) -> list[Item]:
        """Return the items in the range, in the order of their sort keys."""

    def query(
        self,
        pk: str,
        *,
        first: str = "",
        last: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Item]:
        """Return the items whose sort keys lie from `first` to `last`, both included, in order."""
        return self.read_range(KeyRange(pk, first, last, limit, newest_first))
