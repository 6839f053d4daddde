"""A run that is read while it is written: by rule-made schedules against a simple oracle, and by threads."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smdebug.exceptions import (
    SMDebugError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial, no_refresh
from smdebug.trials.progress import StepState
from tests.trials.writing import begin, end, open_trial, write_step

WORKERS = 3
MODES = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL]


def mode_of(step: int) -> ModeKeys:
    return MODES[step % 3]


class GrowingRun(RuleBasedStateMachine):
    """Workers write in any order relative to each other; the trial refreshes at any time.

    The oracle is the set of files at the last refresh, and which of them could still be seen then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storage = begin(MemoryStorage(), WORKERS)
        self.written: set[tuple[int, int]] = set()
        self.seen: set[tuple[int, int]] = set()
        self.settled = -1
        self.damaged: set[tuple[int, int]] = set()
        self.ended = False
        self.trial = open_trial(self.storage)

    @precondition(lambda self: not self.ended)
    @rule(step=st.integers(0, 11), worker=st.integers(0, WORKERS - 1))
    def a_worker_writes(self, step: int, worker: int) -> None:
        if (step, worker) in self.written | self.damaged:
            return
        mode = mode_of(step)
        mode_step = step if mode is ModeKeys.GLOBAL else step // 3
        tensors = {"loss": float(step * 10 + worker), f"only_{worker}": 1.0}
        write_step(self.storage, step, tensors, worker=worker, mode=mode, mode_step=mode_step)
        self.written.add((step, worker))

    @precondition(lambda self: not self.ended)
    @rule(step=st.integers(0, 11), worker=st.integers(0, WORKERS - 1))
    def an_index_file_arrives_damaged(self, step: int, worker: int) -> None:
        if (step, worker) not in self.written | self.damaged:
            self.storage.write(names.index_key(step, f"worker_{worker}"), b'{"meta": ')
            self.damaged.add((step, worker))

    @precondition(lambda self: not self.ended)
    @rule()
    def the_run_ends(self) -> None:
        end(self.storage)
        self.ended = True

    @rule()
    def the_trial_looks(self) -> None:
        if not self.trial.loaded_all_steps:
            token = (self.settled, WORKERS - 1)
            self.seen |= {arrival for arrival in self.written if arrival > token}
        self.trial.maybe_refresh()
        steps = {step for step, _ in self.seen}
        complete = [s for s in steps if all((s, w) in self.seen for w in range(WORKERS))]
        self.settled = max([self.settled, *complete])
        if self.ended:
            self.settled = max([self.settled, *steps])

    @rule()
    def a_second_trial_sees_everything(self) -> None:
        fresh = open_trial(self.storage)
        steps = sorted({step for step, _ in self.written})
        assert fresh.steps(show_incomplete_steps=True) == steps

    @invariant()
    def the_trial_says_what_it_saw(self) -> None:
        trial, over = self.trial, self.trial.loaded_all_steps
        with no_refresh(trial):
            steps = sorted({step for step, _ in self.seen})
            settled = [step for step in steps if over or step <= self.settled]
            assert trial.steps(show_incomplete_steps=True) == steps
            assert trial.steps() == settled
            assert trial.last_complete_step == self.settled
            assert trial.workers() == [f"worker_{worker}" for worker in range(WORKERS)]
            assert sorted(trial.modes(), key=MODES.index) == [
                mode for mode in MODES[:2] if any(mode_of(step) is mode for step in steps)
            ]
            for step in range(13):
                self.check_step(step, step in steps, over or step <= self.settled)

    def check_step(self, step: int, known: bool, settled: bool) -> None:
        workers = [worker for worker in range(WORKERS) if (step, worker) in self.seen]
        state = self.trial.has_passed_step(step)
        if not settled:
            assert state is StepState.NOT_YET_AVAILABLE
        else:
            assert state is (StepState.AVAILABLE if known else StepState.UNAVAILABLE)
        names_there = {f"only_{worker}" for worker in workers} | ({"loss"} if workers else set())
        assert self.trial.tensor_names(step=step) == sorted(names_there)
        if not self.seen:
            return
        loss = self.trial.tensor("loss")
        if known:
            assert loss.value(step) == step * 10 + workers[0]
            assert loss.workers(step) == [f"worker_{worker}" for worker in workers]
            assert loss.prev_steps(step, 1) == ([step] if settled else loss.steps()[-1:])
            mode, mode_step = self.trial.mode_modestep(step)
            assert mode is mode_of(step)
            assert self.trial.global_step(mode, mode_step) == step
            assert self.trial.has_passed_step(mode_step, mode) is state
            assert loss.value(mode_step, mode) == loss.value(step)
        else:
            wanted = {
                StepState.NOT_YET_AVAILABLE: StepNotYetAvailable,
                StepState.UNAVAILABLE: StepUnavailable,
                StepState.AVAILABLE: TensorUnavailableForStep,
            }[state]
            with pytest.raises(wanted):
                loss.value(step)


TestGrowingRun = GrowingRun.TestCase
TestGrowingRun.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def in_threads(*jobs) -> None:
    """Run the jobs side by side; the first error of any of them comes back."""
    errors: list[BaseException] = []

    def guarded(job) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_readers_see_only_whole_steps_while_a_writer_is_at_work(where, tmp_path):
    storage = begin(MemoryStorage() if where == "memory" else FolderStorage(tmp_path), workers=2)
    trial = open_trial(storage)
    another = open_trial(storage)
    steps = 60

    def write() -> None:
        for step in range(steps):
            for worker in (0, 1):
                tensors = {"loss": float(step), "w": [float(step)] * 50}
                write_step(storage, step, tensors, worker=worker, mode=ModeKeys.TRAIN)
        end(storage)

    def read(own) -> None:
        while True:
            over = own.loaded_all_steps
            seen = own.steps()
            assert seen == list(range(len(seen)))
            if seen:
                loss = own.tensor("loss")
                assert [value.item() for value in loss.values(ModeKeys.TRAIN).values()] >= seen
                assert loss.workers(seen[-1]) == ["worker_0", "worker_1"]
                assert own.tensor_names(step=seen[-1]) == ["loss", "w"]
            if over:
                assert seen == list(range(steps))
                return

    in_threads(write, *[lambda: read(trial)] * 3, lambda: read(another))


def test_a_waiting_reader_wakes_when_the_step_is_there():
    storage = begin(MemoryStorage())
    trial = Trial("a trial", storage)  # in real time

    def write() -> None:
        for step in range(5):
            time.sleep(0.01)
            write_step(storage, step)

    in_threads(write, lambda: trial.wait_for_steps([0, 4]))
    assert trial.steps() == [0, 1, 2, 3, 4]


def test_threads_that_turn_refreshing_off_and_on_leave_it_as_it_was():
    trial = open_trial(begin(MemoryStorage()))

    def flip() -> None:
        for _ in range(200):
            with no_refresh(trial):
                assert isinstance(trial.dynamic_refresh, bool)

    in_threads(*[flip] * 4)
    assert trial.dynamic_refresh is True


def test_two_trials_of_one_folder_do_not_disturb_each_other(tmp_path):
    storage = begin(FolderStorage(tmp_path))
    write_step(storage, 0)
    whole, later = open_trial(storage), open_trial(storage, range_steps=(1, None))
    write_step(storage, 1)
    assert whole.steps() == [0, 1]
    assert later.steps() == [1]
    with no_refresh(whole):
        write_step(storage, 2)
        assert whole.steps() == [0, 1]
        assert later.steps() == [1, 2]


def test_errors_of_reading_are_all_ours():
    storage = begin(MemoryStorage())
    write_step(storage, 0)
    storage.write(names.event_key(0, "worker_0"), b"\xff" * 40)
    with pytest.raises(SMDebugError):
        open_trial(storage).tensor("loss").value(0)
