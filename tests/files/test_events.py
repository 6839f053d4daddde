"""Event records: every array is read back as it was written, as the old library wrote it."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.exceptions import DamagedFile
from smdebug.files import event_layouts
from smdebug.files.checksum import CONSTANT_FOOTER, crc32c
from smdebug.files.event_reading import (
    decode_event,
    iterate_records,
    read_record,
    read_value,
    record_spans,
)
from smdebug.files.event_writing import encode_event
from smdebug.files.framing import frame
from smdebug.files.index import parse_index
from smdebug.files.proto.event_pb2 import Event as EventMessage
from smdebug.mode_keys import ModeKeys
from tests.files.records import MOMENT, same, written
from tests.support.golden_records import event_files, index_files, records_of_the_old_library

NUMBERS = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
STEPS = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize("path", event_files(), ids=lambda path: "/".join(path.parts[-4:]))
def test_records_of_the_reference_runs_are_reproduced_to_the_byte(path):
    data = path.read_bytes()
    again = bytearray()
    for event in iterate_records(data, file=str(path)):
        record = encode_event(
            event.name,
            event.value,
            step=event.step,
            wall_time=event.wall_time,
            mode=event.mode,
            mode_step=event.mode_step,
        )
        again += b"".join(record.pieces)
    assert again == data


def test_every_record_of_the_reference_runs_is_where_the_index_says():
    tensors = 0
    for index_path in index_files():
        index = parse_index(index_path.read_bytes(), file=str(index_path))
        path = index_path.parents[2] / index.meta.event_file_name
        data, step = path.read_bytes(), path.parent.name
        for name, start, length in zip(index.names, index.starts, index.lengths, strict=True):
            record = data[start : start + length]
            event = read_record(record, file=str(path), name=name, step=int(step))
            again = read_value(record, file=str(path), name=name, step=int(step))
            assert same(event.value, again)
            tensors += 1
    assert tensors > 300


@pytest.mark.parametrize(
    "old", records_of_the_old_library(), ids=lambda old: f"{old.name[:30]} {old.array.shape}"
)
def test_our_records_equal_the_old_librarys_to_the_byte_and_can_be_read(old):
    record = encode_event(old.name, old.array, **old.moment)
    assert b"".join(record.pieces) == old.record
    assert record.length == len(old.record)
    assert record.crc32c == crc32c(old.record[12:-4])

    event = read_record(old.record, file="golden", name=old.name, crc32c=record.crc32c)
    assert same(event.value, old.array)
    assert event.name == old.name
    assert event._asdict().items() >= old.moment.items()


@given(st.data(), NAMES, st.sampled_from([*NUMBERS, BFLOAT16]), SHAPES)
def test_every_array_of_numbers_is_read_as_it_was_written(data, name, dtype, shape):
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    content = data.draw(st.binary(min_size=size, max_size=size))
    if dtype.kind == "b":
        content = bytes(byte & 1 for byte in content)
    array = np.frombuffer(content, dtype).reshape(shape)
    check_round_trip(data, name, array)


STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.data(), NAMES, SHAPES)
def test_every_array_of_strings_is_read_as_it_was_written(data, name, shape):
    count = int(np.prod(shape))
    strings = data.draw(st.lists(STRINGS, min_size=count, max_size=count))
    array = np.empty(count, object)
    array[:] = strings
    array = array.reshape(shape)
    if not any(string.endswith("\0") for string in strings):  # which numpy's own text drops
        array = np.array(strings, np.str_).reshape(shape)
    check_round_trip(data, name, array)


def check_round_trip(data, name, array):
    moment = {
        "step": data.draw(STEPS),
        "wall_time": data.draw(st.floats(allow_nan=False)),
        "mode": data.draw(st.sampled_from(ModeKeys)),
        "mode_step": data.draw(st.integers(-1, 2**63 - 1)),
    }
    record = encode_event(
        name, array, **moment, checksum=data.draw(st.sampled_from(["constant", "tfrecord"]))
    )
    written = b"".join(record.pieces)
    buffer = data.draw(st.sampled_from([bytes, bytearray, memoryview]))(written)
    crc = data.draw(st.sampled_from([None, record.crc32c]))

    event = read_record(buffer, file="f", name=name, crc32c=crc)
    assert same(event.value, array)
    assert event._asdict().items() >= {"name": name, **moment}.items()
    for _ in range(2):  # the second may be read by comparison with the first
        value = read_value(buffer, file="f", name=name, step=moment["step"], crc32c=crc)
        assert same(value, array)
        assert value.flags.writeable or value.dtype.kind == "U"


@given(st.data(), st.sampled_from(NUMBERS), SHAPES, STEPS, STEPS)
def test_a_value_is_the_same_whatever_was_read_before(data, dtype, shape, step, other_step):
    first, second = (data.draw(arrays.arrays(dtype, shape)) for _ in range(2))
    record = written("x", first, step=step, mode_step=data.draw(STEPS))
    other = written("x", second, step=other_step, mode_step=data.draw(STEPS))
    for buffer, array, at in (
        (record, first, step),
        (other, second, other_step),
        (record, first, step),
    ):
        assert same(read_value(buffer, file="f", name="x", step=at), array)


@given(st.data(), st.sampled_from(NUMBERS), SHAPES)
def test_byte_order_and_layout_in_memory_do_not_matter(data, dtype, shape):
    array = data.draw(arrays.arrays(dtype, shape))
    plain = written("x", array)
    assert written("x", array.astype(array.dtype.newbyteorder(">"))) == plain
    assert written("x", np.array(array, order="F")) == plain
    strided = np.zeros((*shape, 2), dtype)[..., 0]
    strided[...] = array
    assert written("x", strided) == plain


def test_protobuf_reads_the_same_from_our_records():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    message = EventMessage.FromString(written("x/y", array, step=5)[12:-4])
    (value,) = message.summary.value
    assert (message.step, message.wall_time, value.tag) == (5, 1.7e9, "x/y")
    assert [(dim.size, dim.name) for dim in value.tensor.tensor_shape.dim] == [
        (2, "x/y_2"),
        (3, "x/y_3"),
    ]
    assert value.tensor.tensor_content == array.tobytes()
    assert [(plugin.plugin_name, plugin.content) for plugin in value.metadata.plugin_data] == [
        ("mode_step", "2"),
        ("mode", "1"),
    ]


def test_the_arrays_own_memory_is_one_of_the_pieces():
    array = np.zeros((2, 3), np.float32)
    pieces = encode_event("x", array, **MOMENT).pieces
    array[0, 0] = 1
    assert bytes(pieces[1]) == array.tobytes()


def test_a_large_value_is_a_view_of_the_buffer_and_as_writable():
    array = np.arange(100_000, dtype=np.float64)
    buffer = bytearray(written("x", array))
    for read in (
        lambda buffer: read_value(buffer, file="f", name="x", step=3),
        lambda buffer: read_record(buffer, file="f").value,
    ):
        value = read(memoryview(buffer))
        assert np.array_equal(value, array)
        assert value.flags.writeable
        assert np.shares_memory(value, np.frombuffer(buffer, np.uint8))
        assert not read(bytes(buffer)).flags.writeable


def test_a_small_value_is_a_copy():
    buffer = bytearray(written("own", np.zeros(4)))
    for _ in range(2):
        value = read_value(buffer, file="f", name="own", step=3)
        value[:] = 7
    assert not read_value(buffer, file="f", name="own", step=3).any()


def test_memory_of_templates_and_layouts_is_bounded(monkeypatch):
    templates, layouts = event_layouts.templates, event_layouts.record_layouts
    templates.clear()
    layouts.clear()
    monkeypatch.setattr(event_layouts, "_REMEMBERED", 10)
    for number in range(100):
        record = written(f"tensor {number}", np.zeros(3))
        read_value(record, file="f", name=f"tensor {number}", step=3)
    assert len(templates) <= 10
    assert 0 < len(layouts) <= 10

    templates.clear()
    written("long" * 2000, np.zeros(3))
    assert not templates


def test_threads_do_not_mix_up_their_steps():
    wrong = []

    def write(mode, first):
        for step in range(first, first + 400):
            record = written("shared", np.zeros(2), step=step, mode=mode, mode_step=step * 1000)
            event = read_record(record, file="f")
            if (event.step, event.mode, event.mode_step) != (step, mode, step * 1000):
                wrong.append(event)

    threads = [threading.Thread(target=write, args=(mode, 10**mode.value)) for mode in ModeKeys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_can_have_both_footers():
    data = b"".join(
        piece
        for number, checksum in enumerate(["constant", "tfrecord", "constant"])
        for piece in encode_event(f"t{number}", np.full(3, number), **MOMENT, checksum=checksum).pieces
    )
    assert [event.name for event in iterate_records(data, file="f")] == ["t0", "t1", "t2"]
    assert data.endswith(CONSTANT_FOOTER)


def test_a_full_check_requires_true_checksums():
    true = b"".join(encode_event("x", np.zeros(1), **MOMENT, checksum="tfrecord").pieces)
    assert len(list(iterate_records(true, file="f", check="full"))) == 1
    with pytest.raises(DamagedFile, match="checksum"):
        list(iterate_records(written("x", np.zeros(1)), file="f", check="full"))


def test_without_a_check_headers_and_footers_are_ignored():
    record = bytearray(written("x", np.zeros(1)))
    record[-1] ^= 1
    record[9] ^= 1
    for check in ("none", False):
        assert [event.name for event in iterate_records(record, file="f", check=check)] == ["x"]
    for check in ("minimal", True, "full"):
        with pytest.raises(DamagedFile):
            list(iterate_records(record, file="f", check=check))


def test_an_empty_file_has_no_records():
    assert list(record_spans(b"", file="f")) == []


def test_the_records_before_the_damage_are_read():
    data = written("one", np.zeros(1)) + written("two", np.zeros(1))[:-1]
    records = iterate_records(data, file="events/1.tfevents")
    assert next(records).name == "one"
    with pytest.raises(DamagedFile, match=r"events/1\.tfevents"):
        next(records)


def test_the_metadata_may_be_missing():
    message = EventMessage()
    value = message.summary.value.add(tag="bare")
    value.tensor.dtype = 2
    value.tensor.tensor_content = bytes(8)
    record = b"".join(frame(message.SerializeToString(), "constant").pieces)
    event = read_record(record, file="f")
    assert event == ("bare", 0, 0.0, 0.0, None, None)
    assert read_value(record, file="f", name="bare", step=0) == 0
    assert decode_event(record[12:-4], file="f").value.shape == ()


def test_unknown_fields_are_skipped():
    message = EventMessage()
    message.ParseFromString(written("x", np.arange(3))[12:-4])
    message.summary.value[0].node_name = "a field we do not know"
    message.summary.value[0].tensor.version_number = 7
    message.summary.value[0].metadata.plugin_data.add(plugin_name="another", content="thing")
    record = b"".join(frame(message.SerializeToString(), "constant").pieces)
    assert read_value(record, file="f", name="x", step=3).tolist() == [0, 1, 2]
