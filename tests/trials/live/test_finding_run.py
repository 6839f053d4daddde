from __future__ import annotations

import pytest

from smdebug.exceptions import (
    DamagedFile,
    MissingCollectionFiles,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.files import names
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import LocalTrial, Trial, create_trial
from smdebug.trials.live.waiting import WaitLimits
from tests.trials.writing import StoppedClock, a_run, begin, end, open_trial, write_step


@pytest.fixture
def folder(tmp_path):
    """A run of two steps in a folder."""
    place = tmp_path / "outputs" / "resnet"
    storage = begin(FolderStorage(place))
    write_step(storage, 0)
    write_step(storage, 1)
    return place


def test_a_path_is_enough(folder):
    trial = create_trial(str(folder))
    assert isinstance(trial, LocalTrial)
    assert (trial.name, trial.path) == ("resnet", str(folder))
    assert trial.steps() == [0, 1]


def test_out_dir_is_another_word_for_path(folder):
    assert create_trial(out_dir=str(folder)) == create_trial(path=folder)


def test_blanks_and_slashes_around_the_path_do_not_matter(folder):
    trial = create_trial(f"  {folder}/ ", name="mine")
    assert (trial.name, trial.path) == ("mine", str(folder))


def test_the_home_is_known_by_its_sign(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert create_trial("~/resnet").path == str(folder)


def test_a_relative_path_is_kept_as_it_is(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    trial = create_trial("resnet", range_steps=(1, None))
    assert (trial.path, trial.steps(), trial.range_steps) == ("resnet", [1], (1, None))


def test_the_options_of_old_code_are_accepted(folder):
    trial = LocalTrial("n", str(folder), None, True, check=True, index_mode=True, cache=True)
    assert trial.steps() == [0, 1]


def test_a_storage_can_be_opened_too():
    trial = create_trial(a_run(2))
    assert type(trial) is Trial
    assert trial.steps() == [0, 1]
    assert begin(MemoryStorage.named("a run in memory"))
    assert create_trial("memory://a run in memory").name == "a run in memory"


def test_asking_for_what_is_not_offered_says_so(folder):
    with pytest.raises(SMDebugTypeError, match="path"):
        create_trial()
    with pytest.raises(SMDebugNotImplementedError, match="profiler"):
        create_trial(folder, profiler=True)
    with pytest.raises(SMDebugValueError, match="gs://"):
        create_trial("gs://bucket/run")


class TestWaiting:
    def test_a_run_about_to_start_is_waited_for(self):
        storage = MemoryStorage()
        clock = StoppedClock(*[lambda: None] * 3, lambda: begin(storage))
        assert open_trial(storage, clock).steps() == []
        assert not clock.happenings

    def test_all_workers_collections_are_waited_for(self):
        storage = begin(MemoryStorage(), workers=2, present=1)
        write_step(storage, 0)
        clock = StoppedClock(lambda: begin(storage, workers=2))
        assert open_trial(storage, clock).num_workers == 2

    def test_a_wrong_path_is_not_waited_for_forever(self, tmp_path):
        clock = StoppedClock()
        place = tmp_path / "no" / "such" / "folder"
        with pytest.raises(MissingCollectionFiles) as error:
            open_trial(FolderStorage(place), clock, wait_seconds=90)
        assert 90 <= clock.time < 95
        for part in (str(place), "does not exist", "SMDEBUG_TRIAL_WAIT_SECONDS"):
            assert part in str(error.value)
        assert not place.parent.exists()

    def test_what_is_waited_for_is_reported_while_waiting(self, capsys):
        storage = MemoryStorage()
        storage.write("other/file", b"")
        with pytest.raises(MissingCollectionFiles, match="other/file"):
            open_trial(storage, StoppedClock(), wait_seconds=90)
        messages = [line for line in capsys.readouterr().out.splitlines() if "Waiting for a run" in line]
        assert len(messages) == 2  # after two seconds, and a minute
        assert "collections/000000000/<worker>_collections.json" in messages[0]

    def test_too_few_collections_files_are_counted(self):
        storage = begin(MemoryStorage(), workers=3, present=2)
        with pytest.raises(MissingCollectionFiles, match=r"2 of 3 workers \(worker_0, worker_1\)"):
            open_trial(storage, wait_seconds=1)

    def test_a_run_that_ended_without_saving_anything_says_so_at_once(self):
        storage = MemoryStorage()
        end(storage)
        clock = StoppedClock()
        with pytest.raises(MissingCollectionFiles, match="has ended"):
            open_trial(storage, clock)
        assert clock.time == 0

    def test_a_run_that_ends_while_it_is_waited_for_says_so(self):
        storage = begin(MemoryStorage(), workers=2, present=1)
        with pytest.raises(MissingCollectionFiles, match="1 of 2 workers"):
            open_trial(storage, StoppedClock(lambda: None, lambda: end(storage)))

    def test_a_run_in_the_first_format_says_so_at_once(self):
        storage = MemoryStorage()
        storage.write(names.FIRST_FORMAT_MARKER, b"")
        storage.write("events/000000/x.tfevents", b"")
        clock = StoppedClock()
        with pytest.raises(SMDebugRuntimeError, match="first format"):
            open_trial(storage, clock)
        assert clock.time == 0

    def test_a_damaged_collections_file_does_not_matter_if_another_is_whole(self):
        storage = begin(MemoryStorage(), workers=2)
        storage.write(names.collections_key("worker_0"), b"{")
        assert open_trial(storage).num_workers == 2
        storage.write(names.collections_key("worker_1"), b"[]")
        with pytest.raises(DamagedFile, match=r"worker_0_collections\.json"):
            open_trial(storage)

    def test_a_patience_that_is_not_a_number_is_refused(self, monkeypatch):
        monkeypatch.setenv("SMDEBUG_TRIAL_WAIT_SECONDS", " 5 ")
        monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "10")
        assert WaitLimits.from_environment() == WaitLimits(run_seconds=5.0, incomplete_steps=10)
        for wrong in ("soon", "-1", "nan", "inf"):
            monkeypatch.setenv("SMDEBUG_TRIAL_WAIT_SECONDS", wrong)
            with pytest.raises(SMDebugValueError, match="SMDEBUG_TRIAL_WAIT_SECONDS"):
                WaitLimits.from_environment()
