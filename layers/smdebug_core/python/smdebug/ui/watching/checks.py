"""Which run's verdict is worked out next in the background, and with what result."""

from __future__ import annotations

from collections.abc import Mapping

from smdebug.ui.finding.glance import Glance

AGAIN = 30.0
"""Seconds until a run that grows is checked again."""
MOST_FAILURES = 3
"""After this many runs in a row that could not be checked, no more are tried."""


_CHECKED = ("training", "failed", "ended", "unknown")


class Checks:
    """The state of the background work. This class decides; a thread of the server does the work."""

    def __init__(self) -> None:
        self.is_on = False
        self.current = ""
        self._failed: dict[str, tuple[int, str]] = {}
        self._checked_at: dict[str, float] = {}
        self._judged: dict[str, int] = {}
        self._in_a_row = 0

    def state_of(self, run_id: str, glance: Glance) -> str:
        """Return how far the verdict of a run is."""
        if run_id == self.current:
            return "checking"
        failed = self._failed.get(run_id)
        if failed is not None and failed[0] == glance.steps:
            return failed[1]
        if self._judged.get(run_id) == glance.steps:
            return "done"
        if glance.issues is not None and glance.checked >= glance.steps:
            return "done"
        if (
            not self.is_on
            or glance.state not in ("training", "failed", "ended", "unknown")
            or not glance.steps
        ):
            return "done" if glance.issues is not None else "off"
        return "waiting"

    def next(self, runs: Mapping[str, Glance], now: float) -> str | None:
        """Return the run to check now, the one saved last first; None if none is due."""
        if not self.is_on or self._in_a_row >= MOST_FAILURES:
            return None
        due = [
            (glance.last_saved or 0.0, run_id)
            for run_id, glance in runs.items()
            if self.state_of(run_id, glance) == "waiting"
            and now - self._checked_at.get(run_id, -AGAIN) >= AGAIN
        ]
        return max(due)[1] if due else None

    def end(self, run_id: str, now: float, steps: int, problem: str = "") -> None:
        """Note that a run was checked, or why it could not be."""
        self.current = ""
        self._checked_at[run_id] = now
        self._in_a_row = self._in_a_row + 1 if problem else 0
        if problem:
            self._failed[run_id] = (steps, f"could not be checked: {problem}")
        else:
            self._judged[run_id] = steps
            self._failed.pop(run_id, None)

    def forget(self, run_id: str) -> None:
        """Forget a run: another has taken its place."""
        for known in (self._failed, self._checked_at, self._judged):
            known.pop(run_id, None)
