"""Lines of scripts and tests that read runs with the old library, as their authors wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smdebug.analysis.utils import no_refresh, refresh
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import StepState
from smdebug.exceptions import SMDebugError
from smdebug.trials import create_trial


def write_collections(path: Path, workers: int, num_workers: int | None = None) -> None:
    manager = CollectionManager()
    manager.set_num_workers(workers if num_workers is None else num_workers)
    manager.add("default")
    for worker in range(workers):
        manager.export(str(path), f"worker_{worker}_collections.json")


def write_index_file(path: Path, step: int, event_file_name: str, worker: str = "worker_0") -> None:
    """An index file whose entries point at one byte of an event file that is not there."""
    folder = path / "index" / "000000000"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "meta": {"mode": "TRAIN", "mode_step": step, "event_file_name": event_file_name},
        "tensor_payload": [{"tensorname": name, "start_idx": 0, "length": 1} for name in ("foo_1", "boo_5")],
    }
    (folder / f"{step:012}_{worker}.json").write_text(json.dumps(content))


@pytest.fixture
def run(tmp_path):
    """A run of three steps without event files."""
    write_collections(tmp_path, 1)
    for step in range(3):
        write_index_file(tmp_path, step, "")
    return tmp_path


@pytest.mark.parametrize("workers", [1, 2001])
def test_workers_are_known_from_the_collections_files_alone(tmp_path, workers):
    write_collections(tmp_path, workers)
    trial = create_trial(str(tmp_path))
    assert trial.workers() == sorted(f"worker_{worker}" for worker in range(workers))
    assert trial.num_workers == workers
    assert trial.steps() == []


@pytest.mark.parametrize("event_file", ["", "events/000000000001/000000000001_worker_0.tfevents"])
def test_steps_are_known_without_event_files(tmp_path, monkeypatch, event_file):
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "0")
    write_collections(tmp_path, 1)
    for step in range(3):
        write_index_file(tmp_path, step, event_file)
    trial = create_trial(str(tmp_path))
    assert trial.steps() == [0, 1, 2]
    assert trial.steps(mode=ModeKeys.TRAIN) == [0, 1, 2]
    assert trial.has_passed_step(1) is StepState.AVAILABLE
    assert trial.has_passed_step(3) is StepState.NOT_YET_AVAILABLE
    assert trial.last_complete_step == 2
    assert not trial.loaded_all_steps
    assert trial.last_index_token.endswith("000000000002_worker_0.json")
    assert trial.tensor_names() == ["boo_5", "foo_1"]
    with pytest.raises(SMDebugError):
        trial.tensor("foo_1").value(1)


def test_the_last_index_token_is_the_whole_path_of_an_index_file(run):
    trial = create_trial(str(run))
    assert trial.steps() == [0, 1, 2]
    assert trial.last_index_token == f"{run}/index/000000000/000000000002_worker_0.json"
    assert Path(trial.last_index_token).is_file()


def test_the_last_complete_step_moves_by_half_a_window_at_each_query(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "10")
    write_collections(tmp_path, 2)
    for step in range(20):
        write_index_file(tmp_path, step, "")
        if step < 5:
            write_index_file(tmp_path, step, "", worker="worker_1")
    trial = create_trial(str(tmp_path))
    assert trial.last_complete_step == -1
    assert trial.last_index_token is None
    assert trial.tensors() == ["boo_5", "foo_1"]
    assert trial.last_complete_step == -1
    trial.refresh_data()
    assert trial.last_complete_step == 4
    assert trial.last_index_token.endswith("/000000000004_worker_1.json")
    assert trial.tensors() == ["boo_5", "foo_1"]
    assert trial.last_complete_step == 4
    assert trial.steps() == [*range(10)]
    for _ in range(3):
        assert trial.last_complete_step == 9
        trial.tensor_names()


def test_a_step_of_one_of_two_workers_is_incomplete(tmp_path):
    write_collections(tmp_path, 2)
    write_index_file(tmp_path, 0, "")
    trial = create_trial(str(tmp_path))
    assert trial.steps() == []
    assert trial.steps(show_incomplete_steps=True) == [0]
    (tmp_path / "training_job_end.ts").touch()
    assert trial.steps() == [0]
    assert trial.loaded_all_steps


def test_a_value_that_is_one_byte_long_is_an_error(tmp_path):
    write_collections(tmp_path, 1)
    event_file = tmp_path / "events" / "x.tfevents"
    event_file.parent.mkdir()
    event_file.write_bytes(b"x")
    write_index_file(tmp_path, 0, "events/x.tfevents")
    with pytest.raises(SMDebugError):
        create_trial(str(tmp_path)).tensor("foo_1").value(0)


def test_a_collection_of_a_trial_can_be_extended(run):
    trial = create_trial(str(run))
    trial.collection("test").include("foo")
    trial.collection("test").add_tensor_name("boo_5")
    trial.collection("test").add_tensor_name("not in the run")
    assert trial.tensor_names(collection="test") == ["boo_5", "foo_1"]
    assert trial.tensor_names(collection=trial.collection("test")) == ["boo_5", "foo_1"]
    trial.collection("default").include("boo")
    assert trial.tensor_names(collection="default") == ["boo_5"]


def test_an_extended_collection_gets_what_is_exported_later(run):
    trial = create_trial(str(run))
    extended = trial.collection("default")
    extended.add_tensor_name("boo_5")
    manager = CollectionManager()
    manager.get("default").add_tensor_name("foo_1")
    manager.export(str(run), "worker_0_collections.json")
    (run / "training_job_end.ts").touch()
    assert trial.steps() == [0, 1, 2]
    assert trial.loaded_all_steps
    assert trial.tensor_names(collection="default") == ["boo_5", "foo_1"]
    assert trial.collection("default") is extended


def test_a_collection_and_a_regex_exclude_each_other(run):
    with pytest.raises(ValueError, match="Only one"):
        create_trial(str(run)).tensor_names(collection="default", regex="foo")


@pytest.mark.parametrize(("manager", "expected"), [(no_refresh, [0, 1, 2]), (refresh, [0, 1, 2, 3])])
def test_refreshing_managers_give_back_what_they_take(run, manager, expected):
    first, second = create_trial(str(run)), create_trial(str(run))
    with manager([first, second]) as [one_trial, other_trial]:
        assert one_trial is first
        assert other_trial is second
        write_index_file(run, 3, "")
        assert one_trial.steps() == other_trial.steps() == expected
    with manager([first]) as [only]:
        assert only is first
    with manager(second) as trial:
        assert trial is second


def test_no_mode_means_global(run):
    trial = create_trial(str(run))
    assert trial.steps(mode=None) == trial.steps() == [0, 1, 2]
    assert trial.global_step(None, 1) == 1
    assert trial.tensor("foo_1").steps(mode=None) == [0, 1, 2]
    assert trial.has_passed_step(1, mode=None) is StepState.AVAILABLE
