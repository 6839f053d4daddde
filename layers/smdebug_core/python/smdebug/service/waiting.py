"""Waiting until a run reaches a state, with the news in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError, StorageUnavailable, WaitedTooLong
from smdebug.service.news import News, news
from smdebug.service.records import RunState
from smdebug.service.run_status import RunSnapshot

Condition = Callable[[RunSnapshot], bool]

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0


class Clock(NamedTuple):
    """The time, and how to let it pass."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def condition(until: str | int | Condition) -> Condition:
    """The condition that `until` names."""
    if callable(until):
        return until
    if isinstance(until, int) and not isinstance(until, bool):
        return lambda run: run.evaluated_through is not None and run.evaluated_through >= until
    if until == "finished":
        return lambda run: run.state is RunState.FINISHED
    if until == "found":
        return lambda run: run.has_found_something or run.state is RunState.FINISHED
    raise SMDebugValueError(f"until must be 'finished', 'found', a step number or a function, not {until!r}")


def wait_until(
    is_met: Condition,
    look: Callable[[], RunSnapshot],
    *,
    location: str,
    clock: Clock,
    timeout: float | None,
    on_news: Callable[[News], Any] | None,
) -> RunSnapshot:
    """Poll `look` until the condition is met, more slowly while nothing changes; return the snapshot."""
    begun = clock.now()
    before: RunSnapshot | None = None
    pause = _SHORTEST_PAUSE
    while True:
        run = _reachable(look) or before
        changes = news(before, run) if run is not None else []
        if on_news is not None:
            for change in changes:
                on_news(change)
        if run is not None and is_met(run):
            return run
        pause = _SHORTEST_PAUSE if changes else min(pause * 1.5, _LONGEST_PAUSE)
        waited = clock.now() - begun
        if timeout is not None and waited >= timeout:
            raise WaitedTooLong(location, timeout, "unreachable" if run is None else run.state.value)
        clock.pause(pause if timeout is None else min(pause, timeout - waited))
        before = run


def _reachable(look: Callable[[], RunSnapshot]) -> RunSnapshot | None:
    try:
        return look()
    except StorageUnavailable:  # it may be available the next time
        return None
