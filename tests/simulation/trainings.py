"""What trainings save, file by file, and what their rules must have seen in the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smdebug.files.names import END_MARKER
from smdebug.storage.memory import MemoryStorage
from tests.functions.saver import Saver

REMEMBERS = {"name": "remembers", "rule": "Remembers", "repeat": "every_step"}
OPENS = {"name": "opens", "rule": "Remembers"}
LARGE = {"name": "large", "rule": "Remembers", "parameters": {"padding": 3000}}
BREAKS = {"name": "breaks", "rule": "Breaks", "parameters": {"at": 1}}
SOURCES = ("rule-sources", "remembers.py", b"from tests.simulation.spy_rules import Remembers\n")
CUSTOM = {
    "name": "custom",
    "rule": "Remembers",
    "source": f"s3://runs/{SOURCES[0]}/{SOURCES[1]}",
    "repeat": "every_step",
}
CUSTOM_LARGE = {**CUSTOM, "name": "custom, large", "parameters": {"padding": 3000}}
ALERTED = "me@example.org"
ACTIONS = [{"name": "stoptraining", "training_job_prefix": "mnist"}, {"name": "email"}]
ACTS = {"name": "acts", "rule": "Remembers", "actions": ACTIONS}
ENDS = {"name": "ends", "rule": "Ends", "repeat": "every_step"}
FLOODS = [
    {"name": f"floods {number}", "rule": "Floods", "parameters": {"findings": 25}} for number in range(11)
]
HUGE = {"name": "huge", "rule": "Remembers", "parameters": {"padding": 450_000}}
KEPT_FOR = 90 * 86_400.0


@dataclass(frozen=True)
class Training:
    """One run: which worker saves which steps, and the order in which files are written."""

    prefix: str = "mnist"
    saves: tuple[tuple[int, ...], ...] = ((0, 1, 2),)  # of each worker
    written_by_old_library: bool = False
    ends: bool = True
    dead: frozenset[int] = frozenset()  # workers that die: they do not close
    collections_last: bool = False
    rules: tuple[str, ...] = ("remembers", "opens")
    first_value: float = 1.0
    resumed: tuple[tuple[int, ...], ...] = ()  # what each worker saves after a checkpoint was loaded
    rules_change: tuple[tuple[str, ...], ...] = ()  # while it goes on
    rules_at_last: tuple[str, ...] | None = None  # when it has ended

    @property
    def run(self) -> str:
        return f"runs/{self.prefix}"

    @property
    def attempt(self) -> int:
        """The number of its last attempt."""
        return 1 if self.resumed else 0

    @property
    def wanted(self) -> tuple[str, ...]:
        """The rules that watch it in the end."""
        if self.rules_at_last is not None:
            return self.rules_at_last
        return self.rules_change[-1] if self.rules_change else self.rules

    @property
    def ever_wanted(self) -> set[str]:
        """And those that watched it at some time, perhaps."""
        return {
            *self.rules,
            *(self.rules_at_last or ()),
            *(n for r in self.rules_change for n in r),
        }

    @cached_property
    def complete(self) -> list[int]:
        """The steps of the last attempt that every worker saves."""
        return sorted(set.intersection(*map(set, self.resumed or self.saves)))

    def value(self, step: int, attempt: int) -> float:
        """The loss: above the limit at the second and third of three steps, and another after resuming."""
        return self.first_value + 0.5 * attempt + (20.0 if step % 3 else 0.0)

    @cached_property
    def partly(self) -> list[int]:
        """The steps at the end of a run that dead workers did not save."""
        saved = self.resumed or self.saves
        last = max(self.complete, default=-1)
        late = {step for steps in saved for step in steps if step > last}
        return sorted(late) if self.ends and self.dead else []

    def seen(self) -> list[list[float]]:
        """What a rule has to have seen: each due step once, whole if it can be, with those before it."""
        known = sorted({*self.complete, *self.partly})
        return [
            [step, self._workers_at(step) * self.value(step, self.attempt), known.index(step) + 1]
            for step in known
        ]

    def _workers_at(self, step: int) -> int:
        return sum(step in steps for steps in self.resumed or self.saves)

    @cached_property
    def files(self) -> Writers:
        """What each worker puts, in its order."""
        return _files(self, 0, self.saves)

    @cached_property
    def changing_rules(self) -> Writers:
        """The rules file of a change during the training."""
        if not self.rules_change:
            return ()
        versions = (self.rules, *self.rules_change)
        return (tuple((RULES_FILE, rules_file(rules)) for rules in versions),)

    @cached_property
    def resumed_files(self) -> Writers:
        """What each worker puts after it was started again."""
        return _files(self, 1, self.resumed)

    @cached_property
    def last_files(self) -> Writers:
        """What is put when the training has ended."""
        if self.rules_at_last is None:
            return ()
        return (((RULES_FILE, rules_file(self.rules_at_last)),),)


Writers = tuple[tuple[tuple[str, bytes], ...], ...]
RULES_FILE = "rules.json"


def rules_file(names: tuple[str, ...]) -> bytes:
    """A rules.json that asks for these."""
    return json.dumps({"version": 1, "rules": [RULES[name] for name in names]}).encode()


def _files(training: Training, attempt: int, saves: tuple[tuple[int, ...], ...]) -> Writers:
    run_id = None if training.written_by_old_library else f"id of {training.prefix}"
    writers = []
    for number, steps in enumerate(saves):
        place = _Recording()
        saver = Saver(
            place,
            f"worker_{number}",
            num_workers=len(saves),
            run_id=run_id,
            training_run=attempt,
        )
        if number == 0 and attempt == 0 and not training.rules_change:
            place.write(RULES_FILE, rules_file(training.rules))
        if not training.collections_last:
            saver.begin()
        for step in steps:
            value = np.array([training.value(step, attempt)], np.float32)
            saver.save(step, {"loss": value})
        if training.collections_last:
            saver.begin()
        if number not in training.dead and (attempt or not training.resumed):
            saver.close()
        writers.append(tuple(place.written))
    return tuple(writers)


RULES: Mapping[str, Mapping[str, object]] = {
    str(rule["name"]): rule
    for rule in (REMEMBERS, OPENS, LARGE, BREAKS, ENDS, CUSTOM, CUSTOM_LARGE, ACTS, HUGE, *FLOODS)
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
