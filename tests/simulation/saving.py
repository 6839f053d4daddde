"""The trainings of a simulation: workers that save, rules that change, runs that resume and end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.simulation.trainings import END, Writers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.stack import Stack

TRAINED_AGAIN = (3.0, 60.0, 700.0)  # seconds until a training resumes from its checkpoint

_STEP = re.compile(r"/(\d{12})_")

Files = list[list[tuple[str, str, bytes]]]


class Trainings:
    """The files that are still to be written, by writer."""

    def __init__(self, simulation: Stack):
        self._simulation = simulation
        trainings = simulation.scenario.trainings
        self._writers = self._files(*(training.files for training in trainings))
        self._changes = self._files(*(training.changing_rules for training in trainings))
        self._resumed = self._files(*(training.resumed_files for training in trainings))
        # Otherwise what was saved before has mostly been evaluated by then.
        self._is_hasty = bool(self._resumed or self._changes) and simulation.chance.random() < 0.4
        self._ends = [training for training in trainings if training.ends]
        # The next step of scenarios in which everything becomes quiet between two steps.
        self._released = 0 if simulation.scenario.pause else None
        self._last_writers = self._files(*(training.last_files for training in trainings))

    def possible(self, *, is_idle: bool) -> list[Callable[[], None]]:
        """Return what may happen next."""
        may_change = self._is_hasty or is_idle
        possible: list[Callable[[], None]] = []
        if self._changes and may_change:
            possible.append(self._change_rules)
        if self._writers:
            if self._may_put():
                possible.append(self._put)
        elif self._resumed:
            if may_change:
                possible.append(self._resume)
        elif self._changes:
            pass
        elif self._ends:
            possible.append(self._end)
        elif self._last_writers:
            possible.append(self._change_rules_after_end)
        return possible

    def go_on(self) -> bool:
        """Save the next step after a pause in which all became quiet; return whether there is one."""
        simulation = self._simulation
        if self._released is None or not self._writers:
            return False
        self._released += 1
        simulation.clock += simulation.scenario.pause
        simulation.last_change = simulation.clock
        simulation.delivery.sweeps_in_vain = 0
        deleted = simulation.items.delete_expired(
            simulation.clock,
            lambda: simulation.schedule.is_orderly or simulation.chance.random() < 0.7,
        )
        simulation.note("expired", deleted)
        return True

    def _may_put(self) -> list[list[tuple[str, str, bytes]]]:
        """Return the writers whose next file is of a step that was released, or of none."""
        if self._released is None:
            return self._writers
        return [files for files in self._writers if _step_in(files[-1][1]) <= self._released]

    def _files(self, *trainings: Writers) -> Files:
        """Return the files of all writers, each writer's first one last."""
        return [
            [(training.prefix, key, data) for key, data in reversed(files)]
            for training, writers in zip(self._simulation.scenario.trainings, trainings, strict=True)
            for files in writers
        ]

    def _put(self) -> None:
        """Have a worker write its next file."""
        simulation = self._simulation
        is_orderly = simulation.schedule.is_orderly
        writers = self._may_put()
        at = 0 if is_orderly else simulation.chance.randrange(len(writers))
        file = writers[at].pop()
        if not writers[at]:
            self._writers.remove([])
        simulation.write(*file)

    def _change_rules(self) -> None:
        self._simulation.write(*self._changes[0].pop())
        if not self._changes[0]:
            del self._changes[0]

    def _resume(self) -> None:
        """Start the training again from its checkpoint, which takes a while."""
        simulation = self._simulation
        is_orderly = simulation.schedule.is_orderly
        simulation.clock += TRAINED_AGAIN[0] if is_orderly else simulation.choose(TRAINED_AGAIN)
        self._writers, self._resumed = self._resumed, []
        self._put()

    def _change_rules_after_end(self) -> None:
        if not self._simulation.schedule.is_orderly:
            self._simulation.clock += self._simulation.choose((0.0, 5.0, 100.0, 1000.0))
        self._writers, self._last_writers = self._last_writers, []
        self._put()

    def _end(self) -> None:
        """Have the chief write the end marker, after the other workers."""
        self._simulation.write(self._ends.pop().prefix, *END)


def _step_in(key: str) -> int:
    """Return the step of a file; -1 for files that belong to none."""
    match = _STEP.search(key)
    return int(match[1]) if match else -1
