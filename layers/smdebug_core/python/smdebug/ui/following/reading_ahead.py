"""Which steps of a long run other processes read, while the server lists the others and answers pages.

Only its speed depends on them: the charts are the same, and without them the server reads the steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from smdebug.files.observations import LAYOUT
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial
from smdebug.trials.stored.worker_steps import Workers
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.following.second_process import SecondProcess, Task

AT_A_TIME = 512
ALIGNED = 64
"""A power of two. The steps sent begin at multiples of it, as `Statistics.extend` needs."""
WORTH_IT = 4 * AT_A_TIME
"""From how many unread steps on other processes are started, which takes half a second."""
_PROCESSES = 2
_UNDER_WAY = 2
"""Tasks that a process has at a time."""
_MOST_LAYOUTS = 256


class ReadingAhead:
    """Has other processes read the steps of one run, while that is worth it. One thread uses it."""

    def __init__(self, path: str, *, is_allowed: bool = True):
        self._path = path
        self._is_allowed = is_allowed
        self._processes: list[SecondProcess] = []
        self._tasks = 0
        """How many tasks were sent: each process gets every n-th."""
        self._answers = 0
        self._sent = 0
        """How many steps were sent or read before."""
        self._layouts: dict[int, Workers] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the processes can be sent steps."""
        return bool(self._processes) and all(each.is_ready for each in self._processes)

    def wait(self, seconds: float) -> None:
        """Wait until the next steps were read, or for so long."""
        if self._tasks > self._answers:
            self._next_process.wait(seconds)

    def read(
        self, trial: Trial, steps: Sequence[int], through: int, charts: Charts, *, is_all: bool
    ) -> tuple[int, bool]:
        """Add what the processes have read to the charts, which have the steps up to `through` so far.

        Return up to which step they have them now, and whether others read the next ones. `is_all` says
        whether `steps` are all steps that there are now.
        """
        count = bisect_right(steps, through)
        if not self._processes:
            if not self._is_worth_it(trial, len(steps) - count):
                return through, False
            self._processes = [SecondProcess(self._path) for _ in range(_PROCESSES)]
        while (part := self._next_process.next_part()) is not None:
            self._answers += 1
            charts.extend(part.charts)
            through, count = part.last, bisect_right(steps, part.last)
        if not self._has_failed():
            is_under_way = self._tasks > self._answers
            if not is_under_way and self._sent != count:
                if not self.is_ready or count % ALIGNED:
                    return through, False
                self._begin_after(trial, steps[:count])
            self._send(trial, steps, charts)
            if self._tasks > self._answers or not is_all:
                return through, True
        self.end()
        return through, False

    def end(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.close()
        self._processes = []
        self._tasks = self._answers = self._sent = 0
        self._layouts.clear()

    @property
    def _next_process(self) -> SecondProcess:
        """The process with the task whose answer is next."""
        return self._processes[self._answers % len(self._processes)]

    def _has_failed(self) -> bool:
        for process in self._processes:
            process.notice()
        if not any(process.has_failed for process in self._processes):
            return False
        self._is_allowed = False
        get_logger().warning(f"A process that read {self._path} ahead has ended, so reading it takes longer")
        return True

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

    def _send(self, trial: Trial, steps: Sequence[int], charts: Charts) -> None:
        """Send the next steps, as long as there are enough and the processes have time."""
        most = _UNDER_WAY * len(self._processes)
        while self._tasks - self._answers < most and len(steps) - self._sent >= AT_A_TIME:
            some = steps[self._sent : self._sent + AT_A_TIME]
            at = {step: _written(trial, step) for step in some}
            for step, workers in at.items():
                self._note_layout(step, workers)
            if len(self._layouts) > _MOST_LAYOUTS:
                self._is_allowed = False  # they are sent with all steps
                return
            per_stretch = {kind: min(ALIGNED, each.steps_in_a_stretch) for kind, each in charts.kinds.items()}
            process = self._processes[self._tasks % len(self._processes)]
            process.send(Task(some, {**self._layouts, **at}, trial.num_workers, per_stretch))
            self._tasks += 1
            self._sent += AT_A_TIME

    def _note_layout(self, step: int, workers: Workers) -> None:
        if any(LAYOUT in written.places for written in workers.values()):
            self._layouts[step] = workers


def _written(trial: Trial, step: int) -> Workers:
    return trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
