"""The item store of all functions: each item names its format, and none of a newer format is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from functions.ports import ALWAYS, ItemChange, ItemStore, Only, Refused
from smdebug.service.step_index.formats import FORMAT, ReadableItems, format_of, readable
from smdebug.service.step_index.item_reader import Item


class VersionedItems(ReadableItems):
    """The items of a store. Reading or changing one of a newer format raises `NewerRecord`.

    A write names the format in its condition, as an item that was not read may have become newer. So an
    older release never puts its lower number on an item whose contents it does not know.
    """

    _store: ItemStore

    def __init__(self, store: ItemStore):
        super().__init__(store)

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        pk, sk = item["pk"], item["sk"]
        written = {**item, FORMAT: format_of(pk, sk)}
        with _unless_newer():
            self._store.put(written, _known(pk, sk, only))

    def update(
        self,
        pk: str,
        sk: str,
        *,
        set: Mapping[str, Any] | None = None,
        set_once: Mapping[str, Any] | None = None,
        add: Mapping[str, Any] | None = None,
        put_in: Mapping[str, Mapping[str, Any]] | None = None,
        remove_from: Mapping[str, Iterable[str]] | None = None,
        remove: Sequence[str] = (),
        only: Only = ALWAYS,
    ) -> Item:
        with _unless_newer():
            return self._store.update(
                pk,
                sk,
                set={**(set or {}), FORMAT: format_of(pk, sk)},
                set_once=set_once,
                add=add,
                put_in=put_in,
                remove_from=remove_from,
                remove=remove,
                only=_known(pk, sk, only),
            )

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        with _unless_newer():
            self._store.delete(pk, sk, _known(pk, sk, only))

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        written = [
            replace(
                change,
                set=change.set if change.delete else {**change.set, FORMAT: format_of(change.pk, change.sk)},
                only=_known(change.pk, change.sk, change.only),
            )
            for change in changes
        ]
        with _unless_newer():
            self._store.change_together(written)


def versioned(store: ItemStore) -> VersionedItems:
    """The store with formats; one that has them already is returned as it is."""
    return store if isinstance(store, VersionedItems) else VersionedItems(store)


@contextmanager
def _unless_newer() -> Iterator[None]:
    """Raise `NewerRecord` instead of `Refused` if an item's format is the reason."""
    try:
        yield
    except Refused as refused:
        for item in refused.found:
            readable(item)
        raise


def _known(pk: str, sk: str, only: Only) -> Only:
    """The condition, and that the item is not of a newer format."""
    return replace(only, below={**only.below, FORMAT: format_of(pk, sk) + 1})
