"""What the custom rules of each run have used on each day, in the step index."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from functions.ports import ALWAYS, ItemStore, Only, Refused
from smdebug.service.step_index import items


class RunBudgets:
    """The amounts of all runs and days, over a store of items."""

    def __init__(self, store: ItemStore, expires: Callable[[], Mapping[str, int]]):
        self._store = store
        self._expires = expires

    def spend(self, run: str, day: str, amount: int, *, most: int | None = None) -> bool:
        """Add to what the run has spent on that day; return False if that would be more than `most`."""
        only = ALWAYS if most is None else Only(below={"used": most - amount + 1})
        pk, sk = items.run_pk(run), items.spent_sk(day)
        try:
            self._store.update(pk, sk, add={"used": amount}, set=self._expires(), only=only)
        except Refused:
            return False
        return True

    def spent(self, run: str, day: str) -> int:
        """Return what the run has spent on that day."""
        item = self._store.get(items.run_pk(run), items.spent_sk(day))
        return 0 if item is None else int(item["used"])
