"""What trainings save, file by file, and what their rules have to have seen when all is quiet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from smdebug.files.names import END_MARKER
from smdebug.storage.memory import MemoryStorage
from tests.functions.saver import Saver

REMEMBERS = {"name": "remembers", "rule": "Remembers", "repeat": "every_step"}
OPENS = {"name": "opens", "rule": "Remembers"}
LARGE = {"name": "large", "rule": "Remembers", "parameters": {"padding": 3000}}
BREAKS = {"name": "breaks", "rule": "Breaks", "parameters": {"at": 1}}
ENDS = {"name": "ends", "rule": "Ends", "repeat": "every_step"}


@dataclass(frozen=True)
class Training:
    """One run: who saves which steps, in what order the files are put."""

    prefix: str = "mnist"
    saves: tuple[tuple[int, ...], ...] = ((0, 1, 2),)  # of each worker
    written_by_old_library: bool = False
    ends: bool = True
    collections_last: bool = False
    rules: tuple[str, ...] = ("remembers", "opens")
    first_value: float = 1.0

    @property
    def run(self) -> str:
        return f"runs/{self.prefix}"

    @cached_property
    def complete(self) -> list[int]:
        """The steps that every worker saves."""
        return sorted(set.intersection(*map(set, self.saves)))

    def value(self, step: int) -> float:
        """The loss: above the limit at the second and third of three steps."""
        return self.first_value + (20.0 if step % 3 else 0.0)

    def seen(self) -> list[list[float]]:
        """What a rule has to have seen: each complete step once, whole, with those before it."""
        workers = len(self.saves)
        known = sorted(set(self.complete))
        return [[step, workers * self.value(step), known.index(step) + 1] for step in self.complete]

    @cached_property
    def files(self) -> tuple[tuple[tuple[str, bytes], ...], ...]:
        """What each worker puts, in its order."""
        return _files(self)


def _files(training: Training) -> tuple[tuple[tuple[str, bytes], ...], ...]:
    run_id = None if training.written_by_old_library else f"id of {training.prefix}"
    writers = []
    for number, steps in enumerate(training.saves):
        place = _Recording()
        saver = Saver(place, f"worker_{number}", num_workers=len(training.saves), run_id=run_id)
        if number == 0:
            configured = [RULES[name] for name in training.rules]
            place.write("rules.json", json.dumps({"version": 1, "rules": configured}).encode())
        if not training.collections_last:
            saver.begin()
        for step in steps:
            value = np.array([training.value(step)], np.float32)
            saver.save(step, {"loss": value})
        if training.collections_last:
            saver.begin()
        writers.append(tuple(place.written))
    return tuple(writers)


RULES: Mapping[str, Mapping[str, object]] = {
    str(one["name"]): one for one in (REMEMBERS, OPENS, LARGE, BREAKS, ENDS)
}
END = (END_MARKER, b"")


class _Recording(MemoryStorage):
    """Remembers what was written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, bytes]] = []

    def write(self, key: str, data: object) -> None:
        super().write(key, data)  # type: ignore[arg-type]
        self.written.append((key, self.read(key)))


@dataclass(frozen=True)
class Scenario:
    """Trainings that go on at the same time."""

    name: str
    trainings: tuple[Training, ...] = field(default_factory=lambda: (Training(),))
    has_gaps: bool = False  # steps that never become complete


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Small ones: what goes wrong with three steps goes wrong with thousands."""
    live = Training(ends=False)
    two = ((0, 1, 2), (0, 1, 2))
    return (
        Scenario("one worker, goes on", (live,)),
        Scenario("one worker, ends"),
        Scenario("two workers, go on", (Training(saves=two, ends=False),)),
        Scenario("two workers, end", (Training(saves=two),)),
        Scenario("one skips a step", (Training(saves=((0, 1, 2, 3), (0, 2, 3))),), has_gaps=True),
        Scenario("one dies", (Training(saves=((0, 1, 2), (0, 1)), ends=False),), has_gaps=True),
        Scenario("of the old library", (Training(saves=two, written_by_old_library=True),)),
        Scenario(
            "collections come last", (Training(saves=two, collections_last=True, ends=False),)
        ),
        Scenario("a large memory", (Training(rules=("large", "remembers"), ends=False),)),
        Scenario("asked at the end", (Training(saves=two, rules=("ends", "remembers")),)),
        Scenario("a rule that breaks", (Training(rules=("breaks", "remembers")),)),
        Scenario(
            "two runs at once",
            (live, Training("mnist2", ends=True, first_value=2.0, saves=((0, 1),))),
        ),
    )
