"""The formats of the items of the step index, so that two releases of the application can share a table.

Every item names the format in which it was written; one without a number is of format 1. A format's number
rises only with a change that earlier releases would misread. A new attribute, or a new field of a body, is
not one: earlier releases keep what they do not know when they rewrite an item.

An item of a newer format is neither read nor changed: `NewerRecord`. The format of a rule's saved state is a
part of its group's, whose number rises with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from smdebug.exceptions import NewerRecord
from smdebug.service.step_index.item_reader import Item, ItemReader, KeyRange

FORMAT = "v"  # the attribute
FORMATS: Mapping[str, int] = {}  # by kind of item, as far as they are not 1

_State = TypeVar("_State", bound=StrEnum)


def kind_of(pk: str, sk: str) -> str:
    """The kind of the item with these keys, such as RUN, GROUP or STEP."""
    return (sk if pk.startswith("RUN#") else pk).partition("#")[0]


def format_of(pk: str, sk: str) -> int:
    """The format in which this release writes the item with these keys."""
    return FORMATS.get(kind_of(pk, sk), 1)


def readable(item: Item) -> Item:
    """The item; `NewerRecord` if its format is newer than this release's."""
    found, known = item.get(FORMAT, 1), format_of(item["pk"], item["sk"])
    if found > known:
        raise NewerRecord(_name(item), f"format {found}", f"{known}")
    return item


def state_in(item: Mapping[str, Any], states: type[_State], value: str) -> _State:
    """The state of that name; `NewerRecord` for one that this release does not know."""
    try:
        return states(value)
    except ValueError:
        known = ", ".join(state.value for state in states)
        raise NewerRecord(_name(item), f"the state {value!r}", known) from None


def _name(item: Mapping[str, Any]) -> str:
    return f"The item {item['sk']} of {item['pk']}"


class ReadableItems(ItemReader):
    """The items of a table, without those of newer formats: `NewerRecord` instead of one of these."""

    def __init__(self, store: ItemReader):
        self._store = store

    def get(self, pk: str, sk: str) -> Item | None:
        item = self._store.get(pk, sk)
        return None if item is None else readable(item)

    def read_range(self, keys: KeyRange) -> list[Item]:
        found = self._store.query(
            keys.pk, first=keys.first, last=keys.last, limit=keys.limit, newest_first=keys.newest_first
        )
        return [readable(item) for item in found]
