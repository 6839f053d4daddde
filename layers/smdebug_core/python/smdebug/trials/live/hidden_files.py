"""Files of earlier attempts that the newest attempt of a training hides, and may still overwrite."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from smdebug.trials.stored.attempts import AttemptId
from smdebug.trials.stored.worker_steps import Workers


class HiddenFiles:
    """The steps of each worker whose file is hidden, and which of these files to check again.

    A worker writes its steps in order. So of the files that it may still replace, the first one is checked,
    and once those that it has passed. An attempt that saves other steps than the previous one passes the
    first one later; until then a check `everywhere` finds what it has replaced.
    """

    def __init__(self) -> None:
        self._steps: dict[str, list[int]] = {}
        self._last: dict[str, int] = {}  # the last step of each worker in the newest attempt
        self._left: set[tuple[int, str]] = set()  # passed, and checked

    def __bool__(self) -> bool:
        return any(self._steps.values())

    def find(self, read: Mapping[int, Workers], shown: Mapping[int, Workers], newest: AttemptId) -> None:
        """Find what is hidden: it was read, and is not shown."""
        self._steps, self._last = {}, {}
        for step in sorted(read):
            seen = shown.get(step, {})
            for worker in read[step]:
                if worker not in seen:
                    if (step, worker) not in self._left:
                        self._steps.setdefault(worker, []).append(step)
                elif seen[worker].attempt.key == newest.key:
                    self._last[worker] = step

    def written(self, step: int, workers: Iterable[str]) -> None:
        """Note that the newest attempt has written these files."""
        for worker in workers:
            self._last[worker] = max(step, self._last.get(worker, step))
            steps = self._steps.get(worker, [])
            place = bisect_left(steps, step)
            if steps[place : place + 1] == [step]:
                del steps[place]

    def worth_a_look(self, num_workers: int, *, everywhere: bool = False) -> list[tuple[int, str]]:
        """Return step and worker of files that the newest attempt, of `num_workers`, may have replaced."""
        found: list[tuple[int, str]] = []
        for worker, steps in self._steps.items():
            passed = bisect_right(steps, self._last.get(worker, -1))
            gone_by = [(step, worker) for step in steps[:passed]]
            self._left.update(gone_by)
            del steps[:passed]
            found += gone_by
            if not _has_left(worker, num_workers):
                found += [(step, worker) for step in (steps if everywhere else steps[:1])]
        return found


def _has_left(worker: str, num_workers: int) -> bool:
    """Return whether a training of `num_workers` has no such worker, as an earlier attempt had more."""
    rank = worker.removeprefix("worker_")
    return rank != worker and rank.isdecimal() and int(rank) >= num_workers
