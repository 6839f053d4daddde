"""What judging the runs of a backtest needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from functions.ports import Clock, Lender
from smdebug.storage import Storage


class Purse(Protocol):
    """What a backtest has spent so far, in dollars."""

    def spend(self, id: str, dollars: float) -> float:
        """Add to it, or give back a negative amount; return what is spent now. `TooMuch`."""


@dataclass(frozen=True)
class BacktestPorts:
    """The ports of the functions of backtests."""

    bucket: Storage
    """The bucket with the runs, in which plans and verdicts are kept."""
    purse: Purse
    clock: Clock
    lender: Lender
    memory_mb: int
    """Of the functions that judge."""
    partition: str = "aws"
    bundles: str = ""
    """The place of the bundles of runs; empty if none are kept."""
