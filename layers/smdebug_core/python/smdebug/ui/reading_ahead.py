"""Which steps of a long run a second process reads, while the server lists the others and answers pages.

Only its speed depends on that process: the charts are the same, and without it the server reads the steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from smdebug.files.observations import LAYOUT
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial
from smdebug.trials.worker_steps import Workers
from smdebug.ui.charts import Charts
from smdebug.ui.second_process import SecondProcess, Task

AT_A_TIME = 512
ALIGNED = 64
"""A power of two. The steps sent begin at multiples of it, as `Statistics.extend` needs."""
WORTH_IT = 4 * AT_A_TIME
"""From how many unread steps on a second process is started, which takes half a second."""
_UNDER_WAY = 2
_MOST_LAYOUTS = 256


class ReadingAhead:
    """Has a second process read the steps of one run, while that is worth it. One thread uses it."""

    def __init__(self, path: str, *, is_allowed: bool = True):
        self._path = path
        self._is_allowed = is_allowed
        self._process: SecondProcess | None = None
        self._sent = 0
        """How many steps were sent or read before."""
        self._layouts: dict[int, Workers] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the process can be sent steps."""
        return self._process is not None and self._process.is_ready

    def wait(self, seconds: float) -> None:
        """Wait until the process has read something, or for so long."""
        if self._process is not None and self._process.under_way:
            self._process.wait(seconds)

    def read(
        self, trial: Trial, steps: Sequence[int], through: int, charts: Charts, *, is_all: bool
    ) -> tuple[int, bool]:
        """Add what the process has read to the charts, which have the steps up to `through` so far.

        Return up to which step they have them now, and whether the process reads the next ones. `is_all` says
        whether `steps` are all steps that there are now.
        """
        count = bisect_right(steps, through)
        if self._process is None:
            if not self._is_worth_it(trial, len(steps) - count):
                return through, False
            self._process = SecondProcess(self._path)
        process = self._process
        for last, later in process.parts():
            charts.extend(later)
            through, count = last, bisect_right(steps, last)
        if not process.has_failed:
            if not process.under_way and self._sent != count:
                if not process.is_ready or count % ALIGNED:
                    return through, False
                self._begin_after(trial, steps[:count])
            self._send(process, trial, steps, charts)
            if process.under_way or not is_all:
                return through, True
        if process.has_failed:
            self._is_allowed = False
            get_logger().warning(
                f"The process that read {self._path} ahead has ended, so reading it takes longer"
            )
        self.end()
        return through, False

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
        self._process, self._sent = None, 0
        self._layouts.clear()

    def _is_worth_it(self, trial: Trial, unread: int) -> bool:
        if not self._is_allowed or unread < WORTH_IT:
            return False
        # A bucket is read by many threads; values that were saved whole have a budget of their own.
        self._is_allowed = trial.storage.concurrency == 1 and trial.observations.exist
        return self._is_allowed

    def _begin_after(self, trial: Trial, steps: Sequence[int]) -> None:
        self._sent = len(steps)
        for step in steps:
            self._note_layout(step, _written(trial, step))

    def _send(
        self, process: SecondProcess, trial: Trial, steps: Sequence[int], charts: Charts
    ) -> None:
        """Send the next steps, as long as there are enough and the process has time."""
        while process.under_way < _UNDER_WAY and len(steps) - self._sent >= AT_A_TIME:
            some = steps[self._sent : self._sent + AT_A_TIME]
            at = {step: _written(trial, step) for step in some}
            for step, workers in at.items():
                self._note_layout(step, workers)
            if len(self._layouts) > _MOST_LAYOUTS:
                self._is_allowed = False  # they are sent with all steps
                return
            per_stretch = {
                kind: min(ALIGNED, each.steps_in_a_stretch) for kind, each in charts.kinds.items()
            }
            process.send(Task(some, {**self._layouts, **at}, per_stretch))
            self._sent += AT_A_TIME

    def _note_layout(self, step: int, workers: Workers) -> None:
        if any(LAYOUT in written.places for written in workers.values()):
            self._layouts[step] = workers


def _written(trial: Trial, step: int) -> Workers:
    return trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
