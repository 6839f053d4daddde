"""The budget of a backtest: a chunk reserves what it is estimated to cost, and settles what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functions.backtests.ports import Purse
from functions.ports import ItemStore
from functions.versioned_items import versioned
from smdebug.exceptions import SMDebugError
from smdebug.service.costs import PRICES

_MICRO = 1_000_000
_KEPT = 90 * 86_400


class BudgetSpent(SMDebugError):
    """The dollars of a backtest are spent: what is left is not judged."""


def reserve(purse: Purse, id: str, dollars: float, budget: float) -> None:
    """Reserve what a chunk may cost; `BudgetSpent` if the budget does not have it."""
    spent = purse.spend(id, dollars)
    if spent > budget:
        purse.spend(id, -dollars)
        raise BudgetSpent(
            f"The budget of ${budget:,.2f} is spent: ${spent - dollars:,.4f} are used or reserved, and "
            f"these runs are estimated at ${dollars:,.4f}"
        )


def settle(purse: Purse, id: str, chunk: Mapping[str, Any], seconds: float, memory_mb: int) -> None:
    """Give back what the chunk did not take, or add what it took besides: requests are as estimated."""
    took = float(chunk["requests"]) + seconds * memory_mb / 1024 * PRICES["GB-second"]
    purse.spend(id, took - float(chunk["dollars"]))


class PurseInTable:
    """The spending in the table of the step index: for each backtest a number of millionths of a dollar."""

    def __init__(self, items: ItemStore, now: Callable[[], float]):
        self._items = versioned(items)
        self._now = now

    def spend(self, id: str, dollars: float) -> float:
        changed = self._items.update(
            f"BACKTEST#{id}",
            "SPENT",
            add={"spent": round(dollars * _MICRO)},
            set={"expires": int(self._now()) + _KEPT},
        )
        return int(changed["spent"]) / _MICRO
