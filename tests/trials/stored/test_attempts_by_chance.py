"""A machine of trainings that start, resume, save and die, against a reader that knows what it saw."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from smdebug.files import names
from smdebug.storage.memory import MemoryStorage
from tests.trials.writing import end, open_trial, write_step

STEPS = st.integers(0, 12)


class Oracle:
    """What a reader must see, kept beside the files: a value for each step of each attempt."""

    def __init__(self) -> None:
        self.saved: list[tuple[int, int, float]] = []  # attempt, step, value; in the order of time
        self.begun: dict[int, int] = {}  # attempt -> the step it began with

    def shown(self, through: int) -> dict[int, float]:
        """Replay the files up to that attempt: the first step that it saves erases from its start on."""
        on_disk: dict[int, tuple[int, float]] = {}
        for attempt, step, value in self.saved:
            on_disk[step] = (attempt, value)
        shown: dict[int, float] = {}
        for attempt in sorted({by for by, _ in on_disk.values()}):
            if attempt > through:
                break
            shown = {step: value for step, value in shown.items() if step < self.begun[attempt]}
            shown |= {step: value for step, (by, value) in on_disk.items() if by == attempt}
        return shown

    def remaining(self) -> list[int]:
        last = {step: attempt for attempt, step, _ in self.saved}
        return sorted(set(last.values()))


class Trainings(RuleBasedStateMachine):
    """One place, trained at again and again, with a reader that stays open."""

    @initialize(run_id=st.sampled_from(["a", "b"]))
    def begin(self, run_id: str) -> None:
        self.storage = MemoryStorage()
        self.oracle = Oracle()
        self.attempt, self.next_step, self.value = -1, 0, 0.0
        self.run_id, self.time = run_id, 1000.0
        self._start(0)
        self.live = open_trial(self.storage, end_seconds=0)

    def _start(self, at: int) -> None:
        self.attempt += 1
        self.next_step = self.oracle.begun[self.attempt] = at
        self.meta = {"run_id": self.run_id, "training_run": self.attempt}
        if self.attempt:
            self.meta["resumed_at"] = at
        content = {"collections": {}, "_meta": {"num_workers": 1, **self.meta}}
        self.storage.write(names.collections_key("worker_0"), json.dumps(content).encode())

    @rule(skipped=st.integers(0, 3))
    def save(self, skipped: int) -> None:
        step = self.next_step + skipped
        self.next_step = step + 1
        self.value += 1.0
        self.time += 1.0
        meta = {**self.meta, "saved_at": self.time}
        write_step(self.storage, step, {"loss": self.value}, meta=meta)
        self.oracle.saved.append((self.attempt, step, self.value))

    @rule()
    def start_from_the_beginning(self) -> None:
        self._start(0)

    @rule(step=STEPS)
    def resume(self, step: int) -> None:
        self._start(min(step, self.next_step))

    @rule()
    def look_at_the_live_run(self) -> None:
        self.live.steps()

    @invariant()
    def a_new_reader_sees_what_it_should(self) -> None:
        if not hasattr(self, "oracle"):
            return
        trial = open_trial(self.storage, end_seconds=0)
        assert _values(trial) == self.oracle.shown(self.attempt)
        numbers = [attempt.number for attempt in trial.attempts()]
        assert numbers == self.oracle.remaining()
        for number in numbers:
            earlier = open_trial(self.storage, end_seconds=0, attempt=number)
            assert _values(earlier) == self.oracle.shown(number)

    def teardown(self) -> None:
        if not hasattr(self, "oracle") or not self.oracle.saved:
            return
        end(self.storage)
        assert _values(self.live) == self.oracle.shown(self.attempt)


def _values(trial) -> dict[int, float]:
    steps = trial.steps()
    return {step: trial.tensor("loss").value(step).item() for step in steps}


TestTrainings = Trainings.TestCase
TestTrainings.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
