"""The outcome of the steps that are written in the background, and its log messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from smdebug.files.collections_file import LostSteps
from smdebug.logger import get_logger
from smdebug.saving.writing.step_recording import StepJob

_NAMED = 10  # lost steps in a message


class WriteOutcome(NamedTuple):
    """The fate of the steps that were submitted."""

    written: int
    lost: tuple[int, ...]
    """Steps that were taken, and could not be written."""
    refused: int
    """How many were not taken, because writing had failed already."""
    reason: str | None
    """The first failure, if anything was lost or refused."""


class WriteLog:
    """Counts written and lost steps. Messages about them wait until `speak` is called, without any lock.

    Logging and callbacks may take long, or call the writer.
    """

    def __init__(self, place: str, on_failure: Callable[[WriteOutcome], object] | None):
        self.failed = False
        self.last_committed: int | None = None
        self._place = place
        self._on_failure = on_failure
        self._written = 0
        self._lost: list[int] = []
        self._refused = 0
        self._refused_steps: tuple[int, int] | None = None
        self._reason: str | None = None
        self._has_logged_error = False
        self._messages: deque[Callable[[], object]] = deque()

    @property
    def outcome(self) -> WriteOutcome:
        return WriteOutcome(self._written, tuple(self._lost), self._refused, self._reason)

    @property
    def lost_steps(self) -> LostSteps:
        """What was not written, as the files of the run say it."""
        steps = [*self._lost, *(self._refused_steps or ())]
        count = len(self._lost) + self._refused
        return LostSteps(count, min(steps, default=None), max(steps, default=None), self._reason or "")

    def committed(self, job: StepJob, *, was_lost: bool) -> None:
        """Count a step as written, also if it had been given up."""
        if job.amends:
            return
        self._written += 1
        self.last_committed = job.step
        if was_lost and job.step in self._lost:
            self._lost.remove(job.step)

    def lost(self, step: int, reason: str) -> None:
        """Count a step as lost; the first is logged."""
        if self._reason is None:
            self._reason = reason
            self._log(
                "warning",
                "smdebug could not write step %s to %s: %s. It continues with the next.",
                step,
                self._place,
                reason,
            )
        if step not in self._lost:  # else values that came late are lost with it
            self._lost.append(step)

    def refused(self, step: int) -> None:
        """Count a step that was not taken."""
        self._refused += 1
        first = step if self._refused_steps is None else self._refused_steps[0]
        self._refused_steps = (min(first, step), step)

    def fail(self, reason: str, waiting: int) -> None:
        """Note that writing has failed for good, the first time."""
        if self.failed:
            return
        self.failed = True
        self._has_logged_error = True
        self._reason = self._reason or reason
        outcome = self.outcome
        self._log(
            "error",
            "smdebug stops saving to %s: %s. Written so far: %d steps; lost: %s. The training continues; "
            "the %d steps that wait are still tried, and nothing after them is saved.",
            self._place,
            reason,
            outcome.written,
            _listed(outcome.lost),
            waiting,
        )
        if (on_failure := self._on_failure) is not None:
            self._messages.append(lambda: on_failure(outcome))

    def summarize(self) -> WriteOutcome:
        """Return the outcome, and log it if anything was lost."""
        outcome = self.outcome
        if outcome.lost or outcome.refused:
            self._log(
                "warning" if self._has_logged_error else "error",
                "smdebug wrote %d steps to %s. Lost: %s; not even tried: %d. The reason was: %s",
                outcome.written,
                self._place,
                _listed(outcome.lost),
                outcome.refused,
                outcome.reason,
            )
            self._has_logged_error = True
        return outcome

    def speak(self) -> None:
        """Log what waits."""
        while self._messages:
            try:
                message = self._messages.popleft()
            except IndexError:
                return  # another thread was faster
            with suppress(BaseException):  # neither a logger nor a callback stops a thread that writes
                message()

    def _log(self, level: str, message: str, *details: object) -> None:
        self._messages.append(lambda: getattr(get_logger(), level)(message, *details))


def _listed(steps: Sequence[int]) -> str:
    if not steps:
        return "none"
    more = f" and {len(steps) - _NAMED} more" if len(steps) > _NAMED else ""
    return f"{len(steps)} ({', '.join(map(str, steps[:_NAMED]))}{more})"


def reason_of(failure: BaseException) -> str:
    """Return why a step could not be written, as the log says it."""
    if isinstance(failure, RuntimeError):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"
