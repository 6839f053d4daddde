from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.core.index_reader import (
    IndexReader,
    LocalIndexReader,
    ReadIndexFilesCache,
    S3IndexReader,
)
from smdebug.core.tensor import ModeSteps, Step, StepState, Tensor
from smdebug.exceptions import IndexReaderException
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.trials import create_trial
from smdebug.trials.live.index_reader import TensorLocation, TensorShape
from tests.trials.writing import a_run

RUN = str(Path(__file__).parents[2] / "golden" / "runs" / "single_worker")


def test_the_old_addresses_lead_to_the_same_things():
    assert issubclass(LocalIndexReader, IndexReader)
    assert issubclass(S3IndexReader, IndexReader)
    trial = create_trial(RUN)
    assert isinstance(trial.tensor("bias/dense"), Tensor)
    assert trial.has_passed_step(0) is StepState.AVAILABLE
    assert trial.index_reader.list_index_files() == LocalIndexReader(RUN).list_index_files()


def test_index_files_are_read_into_places_and_shapes():
    reader = LocalIndexReader(RUN)
    data, last = reader.load_tensor_data_from_index_files()
    assert last == f"{RUN}/index/000000000/000000000012_worker_0.json"
    place = data["weight/dense:0"][0]["worker_0"]["tensor_location"]
    assert isinstance(place, TensorLocation)
    assert place.to_dict() == {"tensorname": "weight/dense:0", "start_idx": 148, "length": 176}
    assert (place.mode, place.mode_step, place.worker) == (ModeKeys.TRAIN, 0, "worker_0")
    assert reader.fetch_tensor_value(place).shape == (4, 3)
    shape = data["weight/dense:0"][0]["worker_0"]["tensor_shape"]
    assert isinstance(shape, TensorShape)
    assert shape.to_dict() == {
        "tensorname": "weight/dense:0",
        "originalname": "weight/dense:0",
        "shape": (4, 3),
    }


def test_reading_continues_behind_the_last_key_and_keeps_to_a_range():
    reader = LocalIndexReader(RUN)
    _, last = reader.load_tensor_data_from_index_files(range_steps=(0, 9))
    assert last == f"{RUN}/index/000000000/000000000008_worker_0.json"
    _, steps, end, workers = reader.read_index_files(start_after_key=last)
    assert steps == [9, 12]
    assert workers == ["worker_0", "worker_0"]
    assert reader.load_tensor_data_from_index_files(start_after_key=end) == ({}, end)
    assert len(reader.list_event_files()) == len(reader.list_index_files()) == 9
    assert len(reader.list_event_files(f"{RUN}/events/000000000009")) == 2


def test_a_damaged_index_file_is_an_error_here():
    storage = a_run(2)
    storage.write(names.index_key(1, "worker_0"), b"{}")
    with pytest.raises(IndexReaderException):
        IndexReader(storage).load_tensor_data_from_index_files()


def test_the_cache_forgets_what_sorts_before_the_key_once_it_is_full():
    cache = ReadIndexFilesCache()
    cache.cache_limit = 2
    cache.add("a", None)
    cache.add("b", None)
    assert not cache.has_not_read("a")
    cache.add("c", "a")
    assert cache.lookup_set == {"b", "c"}
    assert cache.has_not_read("a")


def test_the_old_containers_hold_what_is_put_into_them():
    steps = ModeSteps(ModeKeys.TRAIN)
    steps.set_step_value(3, "worker_0", 1.5)
    steps.set_step_shape(3, "worker_0", (1,))
    steps.set_step_location(3, "worker_0", "there")
    steps.set_step_reduction_value(3, "worker_0", "max", True, 2.5)
    steps.set_step_reduction_location(3, "worker_0", "max", True, "here")
    assert steps.steps() == [3]
    assert steps.has_step(3)
    step = steps.step(3)["worker_0"]
    assert isinstance(step, Step)
    assert (step.value, step.shape, step.location, step.step_num) == (1.5, (1,), "there", 3)
    assert step.reduction_value("max", True) == step.reduction_values()["max", True] == 2.5
    assert step.reduction_location("max", True) == step.reduction_locations()["max", True] == "here"
