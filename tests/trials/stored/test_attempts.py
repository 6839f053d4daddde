"""A training that was started again: which steps a trial shows, and how it lists the attempts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from smdebug.trials.stored.attempts import hidden_from
from tests.trials.writing import CountingStorage, StoppedClock, begin, end, open_trial, write_step


class Training:
    """A training that can be started again, and saves what the test requests."""

    def __init__(self, storage: Any = None, workers: int = 1):
        self.storage = MemoryStorage() if storage is None else storage
        self.workers = workers
        self.number = -1
        self.time = 1_000.0
        self.meta: dict[str, Any] = {}

    def start(self, resumed_at: int | None = None, *, run_id: str = "r", number: int | None = None):
        self.number = self.number + 1 if number is None else number
        self.meta = {"run_id": run_id, "training_run": self.number}
        if resumed_at is not None:
            self.meta["resumed_at"] = resumed_at
        begin(self.storage, self.workers, meta=self.meta)
        return self

    def save(self, *steps: int, worker: int | None = None, **meta: Any):
        for step in steps:
            self.time += 1
            for at in range(self.workers) if worker is None else [worker]:
                write_step(
                    self.storage,
                    step,
                    {"loss": 100.0 * self.number + step},
                    worker=at,
                    meta={**self.meta, "saved_at": self.time, **meta},
                )
        return self

    def open(self, **options: Any):
        return open_trial(self.storage, end_seconds=0, **options)


def values(trial) -> dict[int, float]:
    return {step: trial.tensor("loss").value(step).item() for step in trial.steps()}


def test_a_training_that_resumes_keeps_the_steps_below():
    training = Training().start().save(0, 10, 20, 25)
    training.start(resumed_at=15).save(20, 30)
    assert values(training.open()) == {0: 0, 10: 10, 20: 120, 30: 130}


def test_a_step_that_the_resumed_training_ran_without_saving_it_is_hidden():
    training = Training().start().save(0, 10, 16)
    training.start(resumed_at=15).save(20)
    assert training.open().steps() == [0, 10, 20]


def test_a_training_that_starts_from_its_beginning_hides_what_was_there():
    training = Training().start().save(0, 10, 20)
    training.start(resumed_at=0).save(5)
    assert training.open().steps() == [5]


def test_an_attempt_that_has_saved_nothing_hides_nothing():
    training = Training().start().save(0, 10)
    training.start(resumed_at=0)
    trial = training.open()
    assert trial.steps() == [0, 10]
    assert [attempt.outcome for attempt in trial.attempts()] == ["interrupted"]


def test_without_a_note_of_where_it_resumed_the_first_saved_step_counts():
    training = Training().start().save(0, 10, 20, 30)
    training.start().save(20)
    assert values(training.open()) == {0: 0, 10: 10, 20: 120}


def test_the_attempts_say_what_they_saved_when_and_how_they_ended():
    training = Training(workers=2).start().save(0, 10, 20)
    training.start(resumed_at=11).save(20, 30)
    end(training.storage)
    first, second = training.open().attempts()
    assert (first.number, first.first_step, first.last_step, first.num_steps) == (0, 0, 10, 2)
    assert (first.workers, first.outcome) == (("worker_0", "worker_1"), "interrupted")
    assert (first.first_saved, first.last_saved) == (1001.0, 1002.0)
    assert (second.number, second.first_step, second.last_step) == (1, 20, 30)
    assert (second.hides_from, second.outcome, second.run_id) == (11, "ended", "r")


def test_an_attempt_without_an_end_marker_is_open():
    (attempt,) = Training().start().save(0).open().attempts()
    assert attempt.outcome == "open"
    assert str(attempt) == ("attempt 0: 1 step (0), 1 worker, open, last saved 1970-01-01 00:16:41 UTC")


def test_an_earlier_attempt_can_be_asked_for():
    training = Training().start().save(0, 10, 20)
    training.start(resumed_at=0).save(5)
    trial = training.open(attempt=0)
    assert trial.steps() == [0, 10, 20]
    assert trial.loaded_all_steps  # nothing waits for more of it
    assert training.open(attempt=1).steps() == [5]
    (first, _) = trial.attempts()
    assert first.hidden_steps == 3
    assert "3 steps (0 to 20), 3 of them hidden by a later attempt" in str(first)


def test_an_attempt_is_shown_with_what_it_kept_of_those_before():
    training = Training().start().save(0, 10)
    training.start(resumed_at=11).save(20)
    training.start(resumed_at=0).save(5)
    assert training.open(attempt=1).steps() == [0, 10, 20]


def test_an_attempt_that_does_not_exist_is_refused_with_those_that_do():
    training = Training().start().save(0, 10)
    with pytest.raises(SMDebugValueError, match=r"no attempt 3\. It has: attempt 0: 2 steps \(0 to 10\)"):
        training.open(attempt=3)
    with pytest.raises(SMDebugValueError, match="0 for the first, not -1"):
        training.open(attempt=-1)
    with pytest.raises(SMDebugTypeError, match="'last'"):
        training.open(attempt="last")


def test_another_training_at_the_same_place_is_a_later_attempt():
    training = Training().start(run_id="b").save(0, 10, 20)
    training.start(run_id="a", number=0).save(0, 5)
    trial = training.open()
    assert trial.steps() == [0, 5]
    assert [(attempt.number, attempt.run_id) for attempt in trial.attempts()] == [
        (0, "b"),
        (1, "a"),
    ]


def test_fewer_workers_hide_the_steps_of_those_that_left():
    training = Training(workers=2).start().save(0, 10)
    training.workers = 1
    training.start(resumed_at=10).save(10)
    trial = training.open()
    assert trial.workers_for_global_step == {0: {"worker_0", "worker_1"}, 10: {"worker_0"}}


def test_a_worker_that_joins_a_later_attempt_counts_from_zero_and_is_shown():
    training = Training().start().save(0, 10)
    training.workers = 2
    training.start(resumed_at=10).save(10, worker=0)
    training.save(10, worker=1, training_run=0)
    trial = training.open()
    assert trial.workers_for_global_step[10] == {"worker_0", "worker_1"}
    assert [attempt.num_steps for attempt in trial.attempts()] == [1, 1]


def test_a_process_that_goes_on_after_the_training_was_started_again_adds_nothing_to_it():
    training = Training().start().save(0, 10)
    training.start(resumed_at=0).save(5)
    training.save(20, training_run=0)  # the first process was not ended
    training.save(25)
    trial = training.open()
    assert trial.steps() == [5, 25]
    assert [(attempt.number, attempt.num_steps) for attempt in trial.attempts()] == [(0, 3), (1, 2)]
    assert training.open(attempt=0).steps() == [0, 10, 20]


def test_a_worker_that_left_belongs_to_the_attempt_in_which_it_saved():
    training = Training(workers=2).start().save(0, 10)
    training.workers = 1
    training.start(resumed_at=0).save(0)
    first, second = training.open().attempts()
    assert (first.workers, second.workers) == (("worker_0", "worker_1"), ("worker_0",))
    assert training.open().workers_for_global_step == {0: {"worker_0"}}


def test_a_range_of_steps_knows_the_attempts_outside_of_it():
    training = Training().start().save(0, 10, 20)
    training.start(resumed_at=0).save(5)
    assert training.open(range_steps=(8, None)).steps() == []
    assert training.open(range_steps=(0, 8)).steps() == [5]
    assert training.open(range_steps=(8, None), attempt=0).steps() == [10, 20]


def test_names_of_hidden_steps_are_not_listed():
    training = Training().start()
    write_step(training.storage, 0, {"gone": 1.0}, meta=training.meta)
    training.start(resumed_at=0).save(0, 5)
    assert training.open().tensor_names() == ["loss"]


def test_a_copy_of_a_trial_shows_the_same_attempt():
    training = Training().start().save(0, 10)
    training.start(resumed_at=0).save(5)
    trial = training.open(attempt=0)
    assert trial.__reduce__()[1][-1] == 0


def test_a_copy_in_another_process_shows_the_same_attempt(tmp_path):
    from smdebug.storage import open_storage

    training = Training(open_storage(tmp_path)).start().save(0, 10)
    training.start(resumed_at=0).save(5)
    end(training.storage)
    trial = create_trial(tmp_path, attempt=0)
    assert pickle.loads(pickle.dumps(trial)).steps() == [0, 10]


class TestLive:
    """A trial that was open when the training was started again."""

    def test_steps_behind_the_last_one_show_the_new_attempt(self):
        training = Training().start().save(0, 10, 20)
        trial = training.open()
        assert values(trial) == {0: 0, 10: 10, 20: 20}
        training.start(resumed_at=0).save(0, 15, 30)
        assert values(trial) == {0: 100, 15: 115, 30: 130}

    def test_steps_below_the_last_one_are_found_after_a_few_quiet_refreshes(self):
        training = Training().start().save(0, 10, 20)
        trial = training.open()
        assert values(trial) == {0: 0, 10: 10, 20: 20}
        training.start(resumed_at=0).save(0, 10)
        for _ in range(4):
            trial.refresh_data()
        assert values(trial) == {0: 100, 10: 110}

    def test_files_are_read_again_when_the_new_attempt_has_replaced_them(self):
        training = Training(workers=2).start().save(0, 10, 20, 30)
        trial = training.open()
        assert list(values(trial)) == [0, 10, 20, 30]
        training.start(resumed_at=0).save(0)
        for _ in range(4):
            trial.refresh_data()
        assert values(trial) == {0: 100}
        training.save(10)
        assert values(trial) == {0: 100, 10: 110}
        training.save(20, 30, 40)
        assert values(trial) == {0: 100, 10: 110, 20: 120, 30: 130, 40: 140}

    def test_an_attempt_that_leaves_out_steps_of_the_one_before_shows_no_old_ones(self):
        training = Training().start().save(0, 10, 20, 30)
        trial = training.open()
        training.start(resumed_at=0).save(0)
        for _ in range(4):
            trial.refresh_data()
        training.save(30)
        for _ in range(4):
            trial.refresh_data()
        assert values(trial) == {0: 100, 30: 130}

    def test_a_file_that_is_replaced_just_before_the_end_is_shown(self):
        training = Training().start().save(0, 10, 20)
        trial = training.open()
        training.start(resumed_at=0).save(0)
        for _ in range(4):
            trial.refresh_data()
        training.save(20)
        end(training.storage)
        assert values(trial) == {0: 100, 20: 120}

    def test_files_that_the_new_attempt_has_passed_by_are_looked_at_once(self):
        training = Training(CountingStorage()).start().save(*range(50))
        trial = training.open()
        training.start(resumed_at=0).save(0, 49, 60)
        assert values(trial) == {0: 100, 49: 149, 60: 160}
        training.storage.asked.clear()
        training.save(61)
        assert trial.steps() == [0, 49, 60, 61]
        assert training.storage.count("read") == 1

    def test_files_of_workers_that_left_are_not_looked_at(self):
        training = Training(CountingStorage(), workers=4).start().save(0, 10, 20)
        training.workers = 1
        training.start(resumed_at=10).save(10)
        trial = training.open()
        training.storage.asked.clear()
        training.save(30)
        assert trial.steps() == [0, 10, 30]
        assert training.storage.count("read") == 2  # step 20 of the worker that stayed, and step 30

    def test_the_end_of_the_new_attempt_is_noticed(self):
        training = Training().start().save(0, 10, 20)
        trial = training.open()
        trial.steps()
        training.start(resumed_at=0).save(0, 10)
        end(training.storage)
        assert trial.steps() == [0, 10]
        assert trial.loaded_all_steps

    def test_waiting_for_a_step_survives_the_restart(self):
        training = Training().start().save(0, 10)

        def again() -> None:
            training.start(resumed_at=0).save(0, 10, 20)

        trial = training.open(clock=StoppedClock(again))
        trial.wait_for_steps([20])
        assert values(trial)[20] == 120

    def test_a_refresh_of_a_resumed_run_reads_only_what_is_new(self):
        training = Training(CountingStorage()).start().save(*range(50))
        training.start(resumed_at=50).save(50)
        trial = training.open()
        training.save(51)
        training.storage.asked.clear()
        assert trial.steps()[-1] == 51
        assert training.storage.count("read") == 1


def test_what_a_hook_writes_names_the_step_at_which_it_resumed(tmp_path):
    import smdebug

    for steps in (5, 3):
        hook = smdebug.Hook(tmp_path, save_config=smdebug.SaveConfig(save_interval=1))
        for _ in range(steps):
            with hook.step():
                hook.record("loss", np.float32(steps))
        hook.end_run(ended=False)
    trial = create_trial(tmp_path)
    first, second = trial.attempts()
    assert (first.hidden_steps, second.hides_from) == (first.num_steps, 0)
    assert trial.steps() == list(range(second.last_step + 1))


@pytest.mark.parametrize(
    ("starts", "borders"),
    [([0], [None]), ([0, 15], [15, None]), ([0, 15, 3], [3, 3, None]), ([5, 0], [0, None])],
)
def test_the_lowest_start_of_later_attempts_is_the_border(starts, borders):
    assert hidden_from(starts) == borders
