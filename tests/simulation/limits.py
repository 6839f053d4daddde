"""The sizes that the services refuse, so that nothing passes here that AWS would not accept.

The numbers are those of the services' documentation. Nothing here is imported from the functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from functions.adapters.in_memory import MemoryItems
from functions.ports import ALWAYS, ItemChange, Only

ITEM = 400 * 1024
ACTIONS = 100  # of one transaction
EVENT = 256 * 1024
EVENTS_TOGETHER = 1024 * 1024
ENTRIES = 10
STATE = 256 * 1024
MESSAGE = 256 * 1024


class TooLarge(AssertionError):
    """A service would have refused this for its size."""


class LimitedItems(MemoryItems):
    """A table that refuses items above 400 KB and deletes what has expired."""

    def put(self, item: Any, only: Only = ALWAYS) -> None:
        _at_most(ITEM, size_of(item), f"the item {item['sk']}")
        super().put(item, only)

    def update(self, pk: str, sk: str, **changes: Any) -> Any:
        item = super().update(pk, sk, **changes)
        _at_most(ITEM, size_of(item), f"the item {sk}")
        return item

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        _at_most(ACTIONS, len(changes), "a transaction")
        super().change_together(changes)

    def delete_expired(self, now: float, chooses: Any) -> int:
        """Delete some of the expired items, as DynamoDB does within hours; return how many."""
        expired = [
            (pk, sk)
            for pk, partition in self._partitions.items()
            for sk, item in partition.items.items()
            if item.get("expires", now) < now and chooses()
        ]
        for pk, sk in expired:
            self.delete(pk, sk)
        return len(expired)


def size_of(value: Any) -> int:
    """Return the size of an attribute or an item as DynamoDB counts it, nearly."""
    if isinstance(value, Mapping):
        return 3 + sum(len(str(key).encode()) + 1 + size_of(part) for key, part in value.items())
    if isinstance(value, list | tuple | frozenset):
        return 3 + sum(1 + size_of(part) for part in value)
    if isinstance(value, bytes):
        return len(value)
    return len(str(value).encode())


def accept_events(entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what one call of PutEvents does not take."""
    sizes = [sum(len(str(part).encode()) for part in entry.values()) for entry in entries]
    _at_most(ENTRIES, len(entries), "a request of events")
    _at_most(EVENT, max(sizes, default=0), "an event")
    _at_most(EVENTS_TOGETHER, sum(sizes), "a request of events")


def accept_state(value: Any, what: str) -> None:
    """Refuse what the workflow cannot carry from one state to the next."""
    _at_most(STATE, len(json.dumps(value).encode()), what)


def accept_message(body: str) -> None:
    """Refuse what the queue does not take."""
    _at_most(MESSAGE, len(body.encode()), "a message")


def _at_most(limit: int, size: int, what: str) -> None:
    if size > limit:
        raise TooLarge(f"{what} has {size:,}, and at most {limit:,} are accepted")
