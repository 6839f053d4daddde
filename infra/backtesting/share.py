"""The share of an account's concurrency that backtests may take: half of it is left to live runs."""

from __future__ import annotations

from typing import Protocol

LEFT_TO_LIVE_RUNS = 20
"""Where a call of a backtest is one of so many that may run, live runs do not notice it."""
_LARGE = 200
"""Calls at once of an account, from which on half of them are more than the live runs of most need."""


class Share(Protocol):
    """The settings that decide it."""

    @property
    def backtests_at_once(self) -> int: ...
    @property
    def nightly_backtest(self) -> bool: ...
    @property
    def nightly_budget(self) -> int: ...
    @property
    def account_concurrency(self) -> int: ...
    @property
    def reserved_concurrency(self) -> int: ...


def problem_with(settings: Share) -> str:
    """Return what is wrong with these settings; empty if nothing is."""
    at_once, limit = settings.backtests_at_once, settings.account_concurrency
    if at_once < 0:
        return f"backtests_at_once={at_once} is negative."
    most = most_at_once(limit, settings.reserved_concurrency)
    if at_once > most:
        return (
            f"backtests_at_once={at_once} would leave live runs less than half of the account's concurrency "
            f"of {limit} (account_concurrency): use at most {most}, or ask AWS for a higher quota."
        )
    if settings.nightly_backtest and not at_once:
        return "nightly_backtest needs backtests: set backtests_at_once, such as 2."
    if settings.nightly_backtest and slows_live_runs(at_once, limit):
        return (
            f"nightly_backtest would slow down live runs in an account of {limit} (account_concurrency): "
            f"ask AWS for a higher quota, of {LEFT_TO_LIVE_RUNS * at_once} or more."
        )
    if not 1 <= settings.nightly_budget <= 10_000:
        return f"nightly_budget={settings.nightly_budget} is outside 1 to 10000 (dollars)."
    return ""


def most_at_once(limit: int, reserved: int) -> int:
    """Return how many calls of backtests leave half of what is not reserved to live runs."""
    return max(2, (limit - reserved) // 2) if limit >= _LARGE else 2


def slows_live_runs(at_once: int, limit: int) -> bool:
    """Whether so many calls of a backtest are missed by live runs: the account is small."""
    return limit < _LARGE and LEFT_TO_LIVE_RUNS * at_once > limit
