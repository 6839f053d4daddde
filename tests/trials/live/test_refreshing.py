from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import (
    AccessDenied,
    DamagedFile,
    StepNotYetAvailable,
    TensorUnavailableForStep,
)
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import no_refresh
from smdebug.trials.progress import StepState
from tests.trials.writing import (
    CountingStorage,
    StoppedClock,
    a_run,
    begin,
    end,
    open_trial,
    write_step,
)

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


class TestRefreshing:
    def test_queries_see_what_has_come_since(self):
        storage = a_run(1)
        trial = open_trial(storage)
        loss = trial.tensor("loss")
        write_step(storage, 1, {"loss": 1.0, "new": 2.0}, mode=TRAIN)
        assert loss.steps() == trial.steps() == [0, 1]
        assert trial.tensor("new").value(1) == 2.0
        assert list(trial.modes()) == [TRAIN]

    def test_a_value_of_a_new_step_is_looked_for(self):
        storage = a_run(1)
        loss = open_trial(storage).tensor("loss")
        write_step(storage, 1)
        assert loss.value(1) == 1.0

    def test_without_refresh_nothing_is_asked_of_the_storage(self):
        storage = CountingStorage()
        begin(storage)
        write_step(storage, 0)
        trial = open_trial(storage)
        trial.tensor("loss").value(0)
        storage.asked.clear()
        with no_refresh(trial):
            write_step(storage, 1)
            assert trial.steps() == [0]
            assert trial.has_passed_step(1) is NOT_YET
            with pytest.raises(StepNotYetAvailable):
                trial.tensor("loss").value(1)
            trial.tensor_names(), trial.workers(), trial.collections(), trial.modes()
        assert storage.asked == []
        assert trial.steps() == [0, 1]

    def test_a_refresh_asks_for_what_is_new_and_no_more(self):
        storage = CountingStorage()
        begin(storage)
        for step in range(5):
            write_step(storage, step)
        trial = open_trial(storage)
        write_step(storage, 5)
        storage.asked.clear()
        trial.steps()
        assert storage.asked == [
            ("exists", names.END_MARKER),
            ("list", names.INDEX_FOLDER),
            ("read", names.index_key(5, "worker_0")),
        ]

    def test_files_of_open_steps_are_read_once(self):
        storage = CountingStorage()
        begin(storage, workers=2)
        for step in range(4):
            write_step(storage, step, worker=0)
        trial = open_trial(storage)
        write_step(storage, 4, worker=0)
        storage.asked.clear()
        assert trial.steps(show_incomplete_steps=True) == [0, 1, 2, 3, 4]
        assert storage.count("read") == 1

    def test_the_last_look_comes_a_moment_after_the_end_marker(self):
        storage = a_run(2, workers=2)
        clock = StoppedClock(lambda: write_step(storage, 2, worker=1))
        trial = open_trial(storage, clock, end_seconds=5.0)
        write_step(storage, 2, worker=0)
        end(storage)
        assert trial.steps() == [0, 1, 2]
        assert trial.tensor("loss").workers(2) == ["worker_0", "worker_1"]
        assert clock.time == 5.0
        assert trial.loaded_all_steps

    def test_an_ended_and_complete_run_is_opened_without_waiting_and_asked_for_nothing_more(self):
        storage = CountingStorage()
        begin(storage)
        write_step(storage, 0)
        end(storage)
        clock = StoppedClock()
        trial = open_trial(storage, clock)
        storage.asked.clear()
        assert trial.loaded_all_steps
        assert trial.steps() == [0]
        assert storage.asked == []
        assert clock.time == 0

    def test_nothing_is_added_under_the_hands_of_a_reader(self):
        storage = a_run(3)
        trial = open_trial(storage)
        steps = trial.steps()
        write_step(storage, 3)
        trial.steps()
        assert steps == [0, 1, 2]


class TestDamage:
    def test_one_damaged_index_file_is_left_out_and_reported_once(self, storage, capsys):
        key = names.index_key(3, "worker_1")
        storage.write(key, b"{")
        trial = open_trial(storage)
        trial.steps()
        trial.refresh_data()
        assert trial.steps() == [0, 3, 4, 6]
        assert list(trial.damaged_files) == [key]
        assert trial.tensor("w").workers(3) == ["worker_0"]
        assert capsys.readouterr().out.count("Skipped a damaged index file") == 1

    def test_a_damaged_file_that_is_replaced_in_time_is_read(self):
        storage = a_run(2)
        good = storage.read(names.index_key(1, "worker_0"))
        storage.write(names.index_key(1, "worker_0"), good[:40])
        trial = open_trial(storage)
        assert trial.steps() == [0]
        storage.write(names.index_key(1, "worker_0"), good)
        assert trial.steps() == [0, 1]
        assert trial.damaged_files == {}

    def test_an_odd_name_among_the_index_files_is_reported(self, storage):
        storage.write("index/000000000/notes.json", b"{}")
        storage.write("index/000000000/readme.txt", b"")
        assert list(open_trial(storage).damaged_files) == ["index/000000000/notes.json"]

    def test_an_index_file_that_points_outside_the_run_is_left_out(self, storage):
        key = names.index_key(6, "worker_0")
        storage.write(key, storage.read(key).replace(b'"events/', b'"../events/'))
        trial = open_trial(storage)
        assert key in trial.damaged_files
        assert trial.tensor("w").workers(6) == ["worker_1"]

    def test_a_flipped_bit_in_an_event_file_names_file_tensor_and_step(self, storage):
        key = names.event_key(3, "worker_0")
        data = bytearray(storage.read(key))
        data[data.index(np.float64(-4).tobytes())] ^= 1
        storage.write(key, bytes(data))
        with pytest.raises(DamagedFile, match=rf"Tensor w in {key} \(step 3\)"):
            open_trial(storage).tensor("w").value(3)

    def test_an_event_file_that_ends_too_early_is_damaged(self, storage):
        key = names.event_key(3, "worker_0")
        storage.write(key, storage.read(key)[:20])
        with pytest.raises(DamagedFile):
            open_trial(storage).tensor("w").value(3)

    def test_a_missing_event_file_is_waited_for(self):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, events=False)
        clock = StoppedClock(lambda: None, lambda: write_step(storage, 1, {"w": 5.0}, index=False))
        assert open_trial(storage, clock).tensor("w").value(1) == 5.0
        assert clock.time == 4.0

    def test_a_missing_event_file_is_not_waited_for_forever(self):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, events=False)
        clock = StoppedClock()
        trial = open_trial(storage, clock, event_file_attempts=7)
        with pytest.raises(TensorUnavailableForStep):
            trial.tensor("w").value(1)
        assert clock.time == 14.0

    @pytest.mark.parametrize("happened", ["a later file", "the end"])
    def test_a_missing_event_file_that_cannot_come_any_longer_is_reported_at_once(self, happened):
        storage = a_run(1)
        write_step(storage, 1, {"w": 5.0}, mode=TRAIN, mode_step=0, events=False)
        if happened == "the end":
            end(storage)
        else:
            write_step(storage, 2)
        clock = StoppedClock()
        with pytest.raises(TensorUnavailableForStep, match=r"tensor w .* step 0 with mode TRAIN"):
            open_trial(storage, clock).tensor("w").value(1)
        assert clock.time == 0

    def test_what_may_not_be_read_is_reported_at_once(self, storage):
        class Forbidden(MemoryStorage):
            def list(self, prefix, start_after=None):
                raise AccessDenied(prefix, "no")

        with pytest.raises(AccessDenied):
            open_trial(Forbidden())

    def test_an_index_without_entries_does_not_count(self, storage):
        storage.write(
            names.index_key(7, "worker_0"),
            b'{"meta": {"mode": "TRAIN", "mode_step": 7}, "tensor_payload": [], "shape_payload": []}',
        )
        trial = open_trial(storage)
        assert 7 not in trial.steps(show_incomplete_steps=True)

    def test_events_without_an_index_are_pointed_out(self, capsys):
        storage = begin(MemoryStorage())
        write_step(storage, 0, index=False)
        end(storage)
        assert open_trial(storage).steps() == []
        assert "event files but no index files" in capsys.readouterr().out
