from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smdebug.exceptions import (
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    StorageUnavailable,
)
from smdebug.files.event_reading import iterate_records, read_record, read_value
from smdebug.files.index import parse_index
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import GATHERED_UP_TO, WRITTEN_AT_ONCE, StepWriter
from smdebug.storage import ByteSpan
from smdebug.storage.memory import MemoryStorage
from tests.support.faulty_storage import FaultyStorage, failing, tearing
from tests.support.looking import each

EVENT_KEY = "events/000000000007/000000000007_worker_0.tfevents"
INDEX_KEY = "index/000000000/000000000007_worker_0.json"


def begin(storage, **more) -> StepWriter:
    step = {"step": 7, "worker": "worker_0", "mode": ModeKeys.TRAIN, "mode_step": 5}
    return StepWriter(storage, **{**step, **more})


def values_in(storage, index_key=INDEX_KEY) -> dict[str, np.ndarray]:
    """What a reader finds, by way of the index file."""
    index = parse_index(storage.read(index_key), file=index_key)
    values = {}
    for name, start, length, crc in zip(index.names, index.starts, index.lengths, index.crcs, strict=True):
        record = storage.read(index.meta.event_file_name, ByteSpan(start, start + length))
        values[name] = read_value(record, file=index.meta.event_file_name, name=name, step=7, crc32c=crc)
    return values


def test_what_was_written_is_read_back_by_way_of_the_index():
    storage = MemoryStorage()
    writer = begin(storage)
    writer.write_tensor("weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.write_tensor("loss", 0.5)
    writer.write_tensor("words", ["a", "größe"])
    writer.commit()

    assert list(storage.list("")) == [EVENT_KEY, INDEX_KEY]
    values = values_in(storage)
    assert values["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values["loss"].tolist() == [0.5]
    assert values["words"].tolist() == ["a", "größe"]
    assert storage.size(EVENT_KEY) == writer.size


def test_the_index_contains_mode_step_checksum_dtype_and_shape():
    storage = MemoryStorage()
    with begin(storage, meta_extras={"run_id": "r1", "previous_step": None}) as writer:
        writer.write_tensor("weight", np.zeros((2, 3), np.int8))
        writer.write_tensor("words", ["a"])
    raw = json.loads(storage.read(INDEX_KEY))
    assert raw["meta"].pop("file_crc32c") >= 0
    assert raw["meta"] == {
        "mode": "TRAIN",
        "mode_step": 5,
        "event_file_name": EVENT_KEY,
        "run_id": "r1",
        "previous_step": None,
    }
    weight, words = raw["tensor_payload"]
    assert (weight["dtype"], weight["shape"]) == ("int8", [2, 3])
    assert (words["dtype"], words["shape"]) == ("str", [1])
    assert weight["start_idx"] == 0
    assert words["start_idx"] == weight["length"]
    assert raw["shape_payload"] == []


def test_extras_of_the_meta_are_computed_when_the_index_is_made():
    storage = MemoryStorage()
    saved = {"previous_step": 3}
    with begin(storage, meta_extras=lambda: saved) as writer:
        writer.write_tensor("x", 1)
        saved = {"previous_step": 6}
    assert json.loads(storage.read(INDEX_KEY))["meta"]["previous_step"] == 6


def test_a_step_without_tensors_and_shapes_is_not_written():
    storage = FaultyStorage()
    begin(storage).commit()
    assert storage.calls == []


def test_a_step_of_shapes_alone_has_no_event_file():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_shape("weight", (4, np.int64(3)), "w")
        writer.write_shape("bias", [])
    assert list(storage.list("")) == [INDEX_KEY]
    index = parse_index(storage.read(INDEX_KEY), file=INDEX_KEY)
    assert index.meta.event_file_name is None
    assert [tuple(record) for record in index.shape_records] == [
        ("weight", "w", (4, 3)),
        ("bias", "bias", ()),
    ]


def test_a_device_is_a_worker():
    storage = MemoryStorage()
    with begin(storage, worker="/job:worker/device:GPU:0") as writer:
        writer.write_tensor("x", 1)
    assert list(storage.list("index/")) == ["index/000000000/000000000007__job-worker_device-GPU-0.json"]


def test_a_record_may_have_a_mode_and_a_time_of_its_own():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_tensor("x", 1, wall_time=12.5, mode=ModeKeys.EVAL, mode_step=0)
        writer.write_tensor("y", 1)
    x, y = iterate_records(storage.read(EVENT_KEY), file=EVENT_KEY)
    assert (x.wall_time, x.mode, x.mode_step, x.step) == (12.5, ModeKeys.EVAL, 0, 7)
    assert (y.mode, y.mode_step, y.step) == (ModeKeys.TRAIN, 5, 7)
    assert y.wall_time > 1.6e9
    assert json.loads(storage.read(INDEX_KEY))["meta"]["mode"] == "TRAIN"


def test_a_name_may_come_twice():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_tensor("x", 1)
        writer.write_tensor("x", 2)
    index = parse_index(storage.read(INDEX_KEY), file=INDEX_KEY)
    assert index.names == ("x", "x")
    assert values_in(storage)["x"].tolist() == [2]


def test_a_record_may_be_left_out_of_the_index():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_tensor("x", 1, indexed=False)
        writer.write_tensor("y", 2)
    assert list(values_in(storage)) == ["y"]
    names = [event.name for event in iterate_records(storage.read(EVENT_KEY), file=EVENT_KEY)]
    assert names == ["x", "y"]


def test_footers_are_true_checksums_on_request():
    storage = MemoryStorage()
    with begin(storage, checksum="tfrecord") as writer:
        writer.write_tensor("x", np.arange(3.0))
    (event,) = iterate_records(storage.read(EVENT_KEY), file=EVENT_KEY, check="full")
    assert event.value.tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [8, WRITTEN_AT_ONCE // 2, WRITTEN_AT_ONCE + 8, GATHERED_UP_TO + 8])
def test_the_array_may_change_as_soon_as_it_is_written(size):
    storage = MemoryStorage()
    array = np.zeros(size // 8)
    with begin(storage) as writer:
        for step in range(30):
            array[:] = step
            writer.write_tensor(f"x{step}", array)
        array[:] = -1
    values = values_in(storage)
    assert [value[-1] for value in values.values()] == list(range(30))
    assert all((value == value[0]).all() for value in values.values())


def test_large_tensors_are_written_at_once_and_small_ones_together():
    storage = FaultyStorage()
    with begin(storage) as writer:
        for number in range(100):
            writer.write_tensor(f"small{number}", np.zeros(100))
        assert storage.calls == []
        writer.write_tensor("large", np.zeros(WRITTEN_AT_ONCE))
        assert [call for call, _ in storage.calls] == ["create", "sink.write"]
        writer.write_tensor("small", np.zeros(100))
    assert [call for call, _ in storage.calls[2:]] == ["sink.write", "sink.commit", "write"]
    assert len(values_in(storage)) == 102


dtypes = st.sampled_from(
    [
        "f2",
        "f4",
        "f8",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "?",
        "c8",
        "c16",
        ">f4",
        ">i8",
    ]
)
arrays = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)))


@given(tensors=st.lists(st.tuples(st.text("abc/:é", min_size=1), arrays), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_every_array_is_read_back_unchanged(tensors):
    storage = MemoryStorage()
    with begin(storage) as writer:
        for name, array in tensors:
            writer.write_tensor(name, array)
    values = values_in(storage)
    for name, array in each(dict(tensors).items()):
        assert values[name].shape == array.shape
        assert values[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(values[name], array)


def test_what_cannot_be_saved_is_refused_and_the_step_continues():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_tensor("before", 1)
        with pytest.raises(SMDebugTypeError):
            writer.write_tensor("bad", {"a": 1})
        with pytest.raises(SMDebugTypeError):
            writer.write_tensor("bad", np.zeros(2, "datetime64[s]"))
        writer.write_tensor("after", 2)
    assert list(values_in(storage)) == ["before", "after"]


def test_an_aborted_step_leaves_no_trace():
    storage = MemoryStorage()
    writer = begin(storage)
    writer.write_tensor("x", np.zeros(2 * WRITTEN_AT_ONCE))
    writer.abort()
    writer.abort()
    assert list(storage.list("")) == []
    with pytest.raises(ZeroDivisionError), begin(storage) as writer:
        writer.write_tensor("x", np.zeros(2 * WRITTEN_AT_ONCE))
        raise ZeroDivisionError
    assert list(storage.list("")) == []


@pytest.mark.parametrize("end", [StepWriter.commit, StepWriter.abort])
def test_a_finished_step_accepts_no_more_records(end):
    writer = begin(MemoryStorage())
    writer.write_tensor("x", 1)
    end(writer)
    for more in (
        lambda: writer.write_tensor("x", 1),
        lambda: writer.write_shape("x", ()),
        writer.commit,
    ):
        with pytest.raises(SMDebugRuntimeError, match="begin a new StepWriter"):
            more()


def test_the_index_is_not_written_before_the_events():
    writer = begin(MemoryStorage())
    writer.write_tensor("x", 1)
    with pytest.raises(SMDebugRuntimeError, match="after its event file"):
        writer.commit_index()


def save_one_step(storage) -> None:
    with begin(storage) as writer:
        writer.write_tensor("small", np.arange(10))
        writer.write_tensor("large", np.zeros(WRITTEN_AT_ONCE))
        writer.write_tensor("small too", np.arange(10))
        writer.write_shape("shape", (3,))


calls_of_one_step = FaultyStorage()
save_one_step(calls_of_one_step)


@pytest.mark.parametrize("fault", [failing(), failing(KeyboardInterrupt()), tearing])
@pytest.mark.parametrize("number", range(len(calls_of_one_step.calls)))
def test_whichever_call_fails_no_reader_sees_half_a_step(number, fault):
    storage = FaultyStorage.at_call(number, fault)
    try:
        save_one_step(storage)
    except (SMDebugError, KeyboardInterrupt, Exception):
        seen = list(storage.list(""))
        # The index file is never there without its event file, nor the event file in parts.
        assert INDEX_KEY not in seen
        if seen:
            whole = [event.name for event in iterate_records(storage.read(EVENT_KEY), file=EVENT_KEY)]
            assert whole == ["small", "large", "small too"]
        assert storage.calls[-1][0] in ("sink.abort", "create", "write")
    else:
        raise AssertionError("the fault was swallowed")
    storage.fault_at = lambda number, call, key: None
    save_one_step(storage)
    assert list(values_in(storage)) == ["small", "large", "small too"]


def test_an_index_file_that_failed_can_be_tried_again():
    storage = FaultyStorage(lambda number, call, key: failing() if number == 3 else None)
    writer = begin(storage)
    writer.write_tensor("x", 1)
    writer.commit_events()
    with pytest.raises(StorageUnavailable):
        writer.commit_index()
    writer.commit_index()
    assert values_in(storage)["x"].tolist() == [1]


def test_a_record_read_whole_contains_everything():
    storage = MemoryStorage()
    with begin(storage) as writer:
        writer.write_tensor("x", np.float32(2), wall_time=3.0)
    event = read_record(storage.read(EVENT_KEY), file=EVENT_KEY, name="x", step=7)
    assert (event.name, event.step, event.wall_time, event.mode_step) == ("x", 7, 3.0, 5)
