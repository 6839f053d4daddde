"""Steps that are missing from a run, and steps that only look as if they were."""

from __future__ import annotations

import json

import hypothesis
import hypothesis.strategies as st
import pytest

import smdebug
from smdebug.files.collections_file import parse_collections
from smdebug.files.names import END_MARKER, collections_key, index_key
from smdebug.runs import open_run, verify
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial
from smdebug.trials.live.waiting import WaitLimits
from tests.trials.stored.lost_runs import WORKER, FullDisk, meta_of, missing, remove, train
from tests.trials.writing import begin, end, open_trial, write_step


def test_a_whole_run_has_no_missing_steps():
    storage = MemoryStorage()
    train(storage, 0, 2, 4, 9)
    assert not open_run(storage).missing_steps
    assert verify(storage).is_sound


@pytest.mark.parametrize(
    ("removed", "says"),
    [
        ([20], "1 step is missing (first: 20)"),
        ([0], "1 step is missing (first: 0)"),
        ([70], "1 step is missing (first: 70)"),
        ([10, 30, 50], "3 steps are missing (first: 10)"),
        ([30, 40, 50], "3 steps are missing (from 21 on)"),
        ([60, 70], "2 steps are missing (from 51 on)"),
        ([0, 10, 20, 30, 40, 50, 60, 70], "8 steps are missing (from 0 on)"),
    ],
)
def test_an_index_file_that_is_gone_is_a_missing_step(removed, says):
    storage = MemoryStorage()
    train(storage, *range(0, 80, 10))
    remove(storage, *removed)
    trial = open_run(storage)
    assert str(trial.missing_steps) == says
    assert trial.missing_steps.count == len(removed)
    assert not verify(storage).is_sound


def test_steps_that_could_not_be_written_are_missing_and_the_reason_is_named():
    storage = FullDisk(2, 3)
    train(storage, *range(6))
    (gap,) = open_run(storage).missing_steps.gaps
    assert (gap.count, gap.first, gap.last) == (2, 2, 3)
    assert "No space left on device" in gap.reason
    assert missing(storage).startswith("2 steps are missing (first: 2): ")
    (problem,) = verify(storage).problems
    assert (problem.step, "could not be written" in problem.problem) == (2, True)


def test_a_live_reader_knows_of_lost_steps_from_the_next_index_file():
    storage = FullDisk(2)
    train(storage, *range(4), killed=True)
    assert not open_run(storage).loaded_all_steps
    assert missing(storage).startswith("1 step is missing (first: 2): ")


def test_a_run_that_could_write_no_step_is_not_sound():
    storage = FullDisk(*range(5))
    train(storage, *range(5))
    found = open_run(storage)
    assert found.steps() == []
    assert found.missing_steps.count == 5
    assert not verify(storage).is_sound


def test_a_hook_that_stopped_saving_says_so_in_its_closing_note(monkeypatch):
    storage = MemoryStorage()
    with smdebug.Hook(storage, save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for step in range(6):
            with hook.step():
                if step == 3:
                    monkeypatch.setattr(hook.recorder.run.writer, "submit", _fails)
                hook.record("loss", 1.0)
    assert open_run(storage).steps() == [0, 1, 2]
    assert missing(storage) == "at least 1 step is missing (first: 3): ValueError: it failed"
    assert "from step 3 on" in verify(storage).problems[0].problem


def _fails(*_: object) -> None:
    raise ValueError("it failed")


def test_an_ended_run_without_a_closing_note_is_not_sound():
    storage = MemoryStorage()
    train(storage, 0, 1, 2, killed=True)
    assert not open_run(storage).missing_steps, "it may still be saving"
    end(storage)
    assert "ended without a closing note of worker_0" in missing(storage)
    assert [problem.file for problem in verify(storage).problems] == [collections_key(WORKER)]


def test_a_step_that_has_not_arrived_yet_is_not_missing():
    storage = MemoryStorage()
    train(storage, 0, 1, 2, 3, killed=True)
    late = storage.read(index_key(3, WORKER))
    remove(storage, 3)
    trial = open_trial(storage)
    assert trial.steps() == [0, 1, 2]
    assert not trial.missing_steps
    storage.write(index_key(3, WORKER), late)
    assert trial.steps() == [0, 1, 2, 3]
    assert not trial.missing_steps


def test_a_file_that_came_while_the_folder_was_listed_is_not_missing():
    class Late(MemoryStorage):
        hides = ""

        def list(self, prefix, start_after=None):
            return (key for key in super().list(prefix, start_after) if key != self.hides)

    storage = Late()
    train(storage, 0, 1, 2, killed=True)
    storage.hides = index_key(1, WORKER)
    trial = open_trial(storage)
    assert not trial.missing_steps
    remove(storage, 1)
    assert trial.missing_steps.count == 1


def test_a_long_run_that_is_listed_in_slices_misses_nothing():
    storage = MemoryStorage()
    train(storage, *range(10))
    trial = open_run(storage, index_files=4)
    assert trial.has_more_files
    assert not trial.missing_steps
    while trial.has_more_files:
        trial.refresh_data()
    assert not trial.missing_steps
    remove(storage, 8, 9)
    assert open_run(storage).missing_steps.count == 2


def test_closing_notes_that_are_newer_than_what_was_read_tell_of_nothing_missing():
    storage = MemoryStorage()
    train(storage, *range(5))
    hidden = {key: storage.read(key) for key in storage.list("index/") if not key.endswith("0_worker_0.json")}
    for key in [*hidden, END_MARKER]:
        storage.delete(key)
    trial = open_trial(storage)
    assert trial.missing_steps.count == 4
    for key, data in hidden.items():
        storage.write(key, data)
    with trial.refreshing(False):
        assert not trial.missing_steps


# Workers, ranges, damage, other libraries


def test_each_worker_has_a_chain_of_its_own():
    storage = MemoryStorage()
    begin(storage, workers=2, meta={"run_id": "a", "training_run": 0})
    for step, before in ((0, None), (2, 0), (4, 2)):
        write_step(storage, step, meta=meta_of(0, before))
    for step, before in ((1, None), (3, 1), (5, 3)):
        write_step(storage, step, worker=1, meta=meta_of(0, before))
    assert not open_run(storage).missing_steps
    remove(storage, 3, worker="worker_1")
    (gap,) = open_run(storage).missing_steps.gaps
    assert (gap.worker, gap.first) == ("worker_1", 3)


def test_one_step_that_two_workers_have_lost_counts_once():
    storage = MemoryStorage()
    begin(storage, workers=2, meta={"run_id": "a", "training_run": 0})
    for worker in range(2):
        for step in range(4):
            meta = meta_of(0, step - 1 if step else None)
            write_step(storage, step, worker=worker, meta=meta)
        remove(storage, 2, worker=f"worker_{worker}")
    assert missing(storage) == "1 step is missing (first: 2)"


def test_steps_outside_of_the_range_that_is_read_are_not_missing():
    storage = MemoryStorage()
    train(storage, *range(10))
    remove(storage, 1, 2, 8)
    assert not open_run(storage, range_steps=(3, 8)).missing_steps
    assert open_run(storage, range_steps=(2, 8)).missing_steps.count == 1
    assert open_run(storage, range_steps=(3, None)).missing_steps.first == 8
    remove(storage, 9)
    assert not open_run(storage, range_steps=(3, 8)).missing_steps


def test_lost_steps_outside_of_the_range_that_is_read_do_not_matter():
    storage = FullDisk(8)
    train(storage, *range(10))
    assert not open_run(storage, range_steps=(0, 5)).missing_steps
    assert not open_run(storage, range_steps=(9, None)).missing_steps
    assert open_run(storage, range_steps=(5, None)).missing_steps.count == 1


def test_a_damaged_index_file_is_damage_and_not_a_missing_step():
    storage = MemoryStorage()
    train(storage, *range(5))
    storage.write(index_key(2, WORKER), b"{")
    trial = open_run(storage)
    assert list(trial.damaged_files) == [index_key(2, WORKER)]
    assert not trial.missing_steps
    assert len(verify(storage).problems) == 1
    remove(storage, 3)
    assert open_run(storage).missing_steps.count == 1


def test_runs_of_the_old_library_name_no_step_before_and_miss_none():
    storage = begin(MemoryStorage())
    for step in (0, 5, 20):
        write_step(storage, step)
    end(storage)
    assert not open_run(storage).missing_steps
    assert verify(storage).is_sound


def test_the_beginning_of_a_run_on_s3_may_have_expired():
    class Bucket(MemoryStorage):
        location = "s3://bucket/run"

    storage = Bucket()
    train(storage, *range(6))
    remove(storage, 0, 1, 2)
    assert not Trial("a run", storage, wait_limits=WaitLimits(end_seconds=0)).missing_steps
    remove(storage, 4)
    assert Trial("a run", storage, wait_limits=WaitLimits(end_seconds=0)).missing_steps.first == 4


def test_the_beginning_of_a_later_attempt_has_not_expired():
    class Bucket(MemoryStorage):
        location = "s3://bucket/run"

    storage = Bucket()
    begin(storage, meta={"run_id": "a", "training_run": 1, "resumed_at": 2})
    write_step(storage, 0, meta=meta_of(0, None))
    write_step(storage, 3, meta={**meta_of(1, 2), "resumed_at": 2})
    assert Trial("a run", storage, wait_limits=WaitLimits(end_seconds=0)).missing_steps.first == 2


# By chance


@hypothesis.given(
    steps=st.sets(st.integers(0, 40), min_size=1, max_size=12),
    gone=st.sets(st.integers(0, 40)),
    unwritten=st.sets(st.integers(0, 40), max_size=6),
)
def test_as_many_steps_are_missing_as_were_lost_or_removed(steps, gone, unwritten):
    storage = FullDisk(*unwritten)
    train(storage, *steps)
    written = steps - unwritten
    remove(storage, *(gone & written))
    found = open_run(storage).missing_steps
    lost = (gone & written) | (unwritten & steps)
    assert found.count == len(lost)
    assert bool(found) == bool(lost) == (not verify(storage).is_sound)
    if lost:
        assert found.first <= min(lost)


def test_the_closing_note_is_in_the_format_that_the_documentation_describes():
    storage = FullDisk(30, 40)
    train(storage, 10, 20, 30, 40, 50)
    meta = parse_collections(storage.read(collections_key(WORKER)), file="")["_meta"]
    assert (meta["closed"], meta["last_step"], meta["steps_written"]) == (True, 50, 3)
    lost = meta["lost_steps"]
    assert (lost["count"], lost["first"], lost["last"]) == (2, 30, 40)
    index = json.loads(storage.read(index_key(50, WORKER)))["meta"]
    assert (index["previous_step"], index["steps_before"], index["lost_steps"]["count"]) == (20, 2, 2)
    assert "lost_steps" not in json.loads(storage.read(index_key(20, WORKER)))["meta"]
    assert storage.exists(END_MARKER)
