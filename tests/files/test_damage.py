"""Damaged bytes: always a typed error that says where, never a wrong value, never for long."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import DamagedFile, IndexReaderException
from smdebug.files import names
from smdebug.files.checksum import crc32c
from smdebug.files.collections_file import parse_collections
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
from smdebug.files.wire import delimited, varint
from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from tests.support.golden_records import GOLDEN, records_of_the_old_library
from tests.trials.writing import begin, open_trial

DAMAGED = GOLDEN / "damaged"
MOMENT = {"step": 300, "wall_time": 1.7e9, "mode": ModeKeys.EVAL, "mode_step": 12}
NAME = "gradient/dense"
SMALL = {
    "numbers": np.arange(6, dtype=np.float32).reshape(2, 3),
    "nothing": np.zeros((0, 2), np.int8),
    "one number": np.array(1.5),
    "booleans": np.array([True, False]),
    "strings": np.array(["a", "bc", "é"]),
}

LARGE = np.arange(128 * 200, dtype=np.float32).reshape(128, 200)


def encoded(array, checksum="constant"):
    record = encode_event(NAME, array, **MOMENT, checksum=checksum)
    return b"".join(record.pieces), record.crc32c


def event_of(tensor, *, name=b"gradient/dense", metadata=b""):
    """An event with a hand-made tensor message."""
    value = delimited(b"\x0a", name) + delimited(b"\x42", tensor) + metadata
    return b"\x09" + bytes(8) + delimited(b"\x2a", delimited(b"\x0a", value))


def shape_of(*sizes):
    return delimited(
        b"\x12", b"".join(delimited(b"\x12", b"\x08" + varint(size)) for size in sizes)
    )


def assert_refused(record, crc=None):
    for read in (read_record, read_value):
        with pytest.raises(DamagedFile) as caught:
            read(record, file="events/300.tfevents", name=NAME, step=300, crc32c=crc)
        error = caught.value
        assert (error.file, error.tensor, error.step) == ("events/300.tfevents", NAME, 300)
        assert error.problem


# Every bit, every length


@pytest.mark.parametrize("checksum", ["constant", "tfrecord"])
@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_no_flipped_bit_goes_unnoticed_when_the_index_has_the_checksum(array, checksum):
    record, crc = encoded(array, checksum)
    for bit in range(len(record) * 8):
        # The undamaged one in between, so that the damaged one is compared with what is remembered.
        good = read_value(record, file="f", name=NAME, step=300, crc32c=crc)
        assert good.tobytes() == array.tobytes()
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged), crc)


@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_no_flipped_bit_goes_unnoticed_under_a_true_footer(array):
    record, _ = encoded(array, "tfrecord")
    for bit in range(len(record) * 8):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged))


@pytest.mark.parametrize("step", [300, 0])
@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_a_flipped_bit_without_any_checksum_is_seen_alike_by_the_slow_and_the_fast_path(
    array, step
):
    record, _ = encoded(array)
    for bit in range(len(record) * 8):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        read_value(record, file="f", name=NAME, step=300)
        try:
            slow = read_record(bytes(damaged), file="f", name=NAME).value
        except DamagedFile:
            with pytest.raises(DamagedFile):
                read_value(bytes(damaged), file="f", name=NAME, step=step)
        else:
            fast = read_value(bytes(damaged), file="f", name=NAME, step=step)
            assert (fast.dtype, fast.shape) == (slow.dtype, slow.shape)
            assert fast.tobytes() == slow.tobytes()


@pytest.mark.parametrize("with_crc", [True, False])
@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_a_record_that_is_cut_off_or_goes_on_is_refused(array, with_crc):
    record, crc = encoded(array)
    read_value(record, file="f", name=NAME, step=300)
    crc = crc if with_crc else None
    for end in range(len(record)):
        assert_refused(record[:end], crc)
    assert_refused(record + b"\0", crc)
    assert_refused(b"\0" + record, crc)


@pytest.mark.parametrize("checksum", ["constant", "tfrecord"])
def test_no_flipped_bit_of_a_large_record_goes_unnoticed(checksum):
    record, crc = encoded(LARGE, checksum)
    for bit in bits_around_the_content(record):
        good = read_value(record, file="f", name=NAME, step=300, crc32c=crc)
        assert good.tobytes() == LARGE.tobytes()
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged), crc)


@pytest.mark.parametrize("step", [300, 0])
def test_a_large_record_without_any_checksum_is_seen_alike_by_the_slow_and_the_fast_path(step):
    record, _ = encoded(LARGE)
    for bit in bits_around_the_content(record):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        read_value(record, file="f", name=NAME, step=300)
        try:
            slow = read_record(bytes(damaged), file="f", name=NAME).value
        except DamagedFile:
            with pytest.raises(DamagedFile):
                read_value(bytes(damaged), file="f", name=NAME, step=step)
        else:
            fast = read_value(bytes(damaged), file="f", name=NAME, step=step)
            assert (fast.dtype, fast.shape) == (slow.dtype, slow.shape)
            assert fast.tobytes() == slow.tobytes()


def bits_around_the_content(record):
    """All that stand before and behind the content, and some of it."""
    content = record.index(LARGE.tobytes()[4:])
    behind = content + LARGE.nbytes
    within = range(content, behind, LARGE.nbytes // 20)
    return [
        8 * byte + bit
        for byte in (*range(content), *within, *range(behind - 4, len(record)))
        for bit in range(8)
    ]


def test_a_file_that_is_cut_off_is_refused_wherever_it_ends():
    records = [encoded(array)[0] for array in SMALL.values()]
    whole, ends = b"".join(records), {0}
    for record in records:
        ends.add(max(ends) + len(record))
    for end in range(len(whole)):
        if end in ends:
            assert list(iterate_records(whole[:end], file="f"))[:1] == [] or end
        else:
            with pytest.raises(DamagedFile):
                list(iterate_records(whole[:end], file="f"))


def test_the_record_of_another_tensor_is_refused():
    record = b"".join(encode_event("another", np.zeros(2), **MOMENT).pieces)
    assert_refused(record)
    assert_refused(record, crc32c(record[12:-4]))


def test_a_checksum_of_other_bytes_is_refused():
    record, crc = encoded(np.zeros(2))
    assert_refused(record, crc ^ 1)


def test_another_tensor_of_the_same_length_is_read_as_what_it_is():
    name = "same length"
    first = b"".join(encode_event(name, np.zeros((2, 3), np.int32), **MOMENT).pieces)
    second = b"".join(encode_event(name, np.ones((3, 2), np.uint32), **MOMENT).pieces)
    assert len(first) == len(second)
    for record, shape, dtype in ((first, (2, 3), "int32"), (second, (3, 2), "uint32")) * 2:
        value = read_value(record, file="f", name=name, step=300)
        assert (value.shape, value.dtype) == (shape, dtype)


# Messages that lie

FLOAT = b"\x08\x01"
LIES = {
    "nothing at all": b"",
    "no value": delimited(b"\x2a", b""),
    "a scalar of TensorBoard's": delimited(
        b"\x2a", delimited(b"\x0a", delimited(b"\x0a", b"x") + b"\x15abcd")
    ),
    "no tag": event_of(FLOAT + shape_of(0), name=b""),
    "a tag that holds a NUL": event_of(FLOAT + shape_of(0), name=b"a\0b"),
    "a tag that is no UTF-8": event_of(FLOAT + shape_of(0), name=b"\xff"),
    "less content than the shape": event_of(FLOAT + shape_of(3) + delimited(b"\x22", bytes(8))),
    "more content than the shape": event_of(FLOAT + shape_of(3) + delimited(b"\x22", bytes(16))),
    "no content": event_of(FLOAT + shape_of(3)),
    "content and an empty shape": event_of(FLOAT + shape_of(0) + delimited(b"\x22", bytes(4))),
    "half a number": event_of(FLOAT + shape_of() + delimited(b"\x22", bytes(3))),
    "a negative dimension": event_of(FLOAT + shape_of(-1)),
    "two negative dimensions": event_of(FLOAT + shape_of(-1, -2) + delimited(b"\x22", bytes(8))),
    "dimensions that overflow to nothing": event_of(FLOAT + shape_of(2**32, 2**32)),
    "dimensions that overflow to four": event_of(
        FLOAT + shape_of(2**62 + 1, 4) + delimited(b"\x22", bytes(16))
    ),
    "an empty array larger than memory": event_of(FLOAT + shape_of(2**62, 2**62, 0)),
    "too many dimensions": event_of(FLOAT + shape_of(*[1] * 65) + delimited(b"\x22", bytes(4))),
    "very many dimensions": event_of(FLOAT + shape_of(*[2**62] * 50_000)),
    "an unknown dtype": event_of(b"\x08\x63" + shape_of(0)),
    "a reference dtype": event_of(b"\x08\x65" + shape_of(1) + delimited(b"\x22", bytes(4))),
    "an enormous dtype": event_of(b"\x08" + varint(2**64 - 1) + shape_of(0)),
    "content without a dtype": event_of(shape_of(2) + delimited(b"\x22", bytes(8))),
    "content without a dtype or a size": event_of(shape_of(0) + delimited(b"\x22", bytes(8))),
    "strings of a number's dtype": event_of(FLOAT + shape_of(1) + delimited(b"\x42", b"text")),
    "too few strings": event_of(shape_of(2) + delimited(b"\x42", b"text")),
    "too many strings": event_of(shape_of() + delimited(b"\x42", b"a") * 2),
    "a string that is no UTF-8": event_of(shape_of(1) + delimited(b"\x42", b"\xc3\x28")),
    "enormously many empty strings": event_of(shape_of(2**40)),
    "a bool that is 2": event_of(b"\x08\x0a" + shape_of(1) + delimited(b"\x22", b"\x02")),
    "two contents": event_of(FLOAT + shape_of(1) + delimited(b"\x22", bytes(4)) * 2),
    "two shapes": event_of(FLOAT + shape_of(1) * 2 + delimited(b"\x22", bytes(4))),
    "content as a number": event_of(FLOAT + shape_of(0) + b"\x20\x04"),
    "a shape as a number": event_of(FLOAT + b"\x10\x00"),
    "a dtype as text": event_of(b"\x0a\x01\x01" + shape_of(0)),
    "a dimension's name that is no UTF-8": event_of(
        FLOAT + delimited(b"\x12", delimited(b"\x12", b"\x08\x00\x12\x01\xff"))
    ),
    "a mode that does not exist": event_of(
        FLOAT + shape_of(0),
        metadata=delimited(b"\x4a", delimited(b"\x0a", b"\x0a\x04mode\x12\x017")),
    ),
    "a mode step that is no number": event_of(
        FLOAT + shape_of(0),
        metadata=delimited(b"\x4a", delimited(b"\x0a", b"\x0a\x09mode_step\x12\x02\xc2\xb2")),
    ),
    "a mode step with too many digits": event_of(
        FLOAT + shape_of(0),
        metadata=delimited(
            b"\x4a",
            delimited(b"\x0a", b"\x0a\x09mode_step" + delimited(b"\x12", b"9" * 5000)),
        ),
    ),
    "a wall time as text": delimited(b"\x0a", b"12345678") + event_of(FLOAT + shape_of(0)),
    "a summary as a number": b"\x28\x01",
}


@pytest.mark.parametrize("payload", LIES.values(), ids=LIES)
def test_a_message_that_lies_is_refused(payload):
    with pytest.raises(DamagedFile):
        decode_event(payload, file="f", tensor=NAME, step=1)
    record = b"".join(frame(payload, "constant").pieces)
    assert_refused(record)
    assert_refused(record, crc32c(payload))
    with pytest.raises(DamagedFile):
        list(iterate_records(record, file="f"))


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        ("a negative dimension", "size -1"),
        ("too few strings", r"1 strings and shape \(2,\)"),
        ("less content than the shape", r"shape \(3,\) of float32 takes 12 bytes, but it has 8"),
        ("an unknown dtype", "dtype number 99 does not exist"),
        ("very many dimensions", "more than 64 dimensions"),
        ("a scalar of TensorBoard's", "'x' is not a tensor"),
    ],
)
def test_the_problem_is_named(lie, problem):
    with pytest.raises(DamagedFile, match=problem):
        decode_event(LIES[lie], file="f")


# Anything


@given(st.binary())
def test_arbitrary_bytes_are_no_event_file(data):
    for read in (
        lambda: decode_event(data, file="f"),
        lambda: read_record(data, file="f"),
        lambda: read_value(data, file="f", name="x", step=0),
        lambda: list(iterate_records(data, file="f")),
        lambda: list(iterate_records(data, file="f", check="none")),
        lambda: list(record_spans(data, file="f")),
    ):
        try:
            read()
        except DamagedFile:
            continue


PAYLOADS = [old.record[12:-4] for old in records_of_the_old_library() if len(old.record) < 500]


@st.composite
def mutated(draw, originals):
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 12)))
        data[start:stop] = draw(st.binary(max_size=12))
    return bytes(data)


@given(mutated(PAYLOADS))
def test_a_changed_event_is_read_as_it_then_is_or_refused(payload):
    from google.protobuf.message import DecodeError

    from smdebug.files.proto.event_pb2 import Event

    try:
        event = decode_event(payload, file="f")
    except DamagedFile:
        return
    try:
        message = Event.FromString(payload)
    except DecodeError:  # more particular than we are about text that nobody reads
        return
    value = message.summary.value[-1]
    assert value.tag == event.name
    assert message.step == event.step
    if event.value.dtype.kind not in "UO":
        assert value.tensor.tensor_content == event.value.tobytes()


INDEX = [
    (GOLDEN / "runs/single_worker/index/000000000/000000000008_worker_0.json").read_bytes(),
    b'{"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "events/x"}, "tensor_payload": '
    b'[{"tensorname": "a", "start_idx": 0, "length": 99, "crc32c": 5, "dtype": "int8", "shape": [2]}]}',
]


@given(mutated(INDEX))
def test_a_changed_index_file_is_read_or_refused(data):
    try:
        index = parse_index(data, file="index/7_w.json")
    except IndexReaderException:
        return
    assert len(index.names) == len(index.starts) == len(index.lengths)
    assert all(type(start) is int and start >= 0 for start in index.starts)


KEYS = """meta mode mode_step event_file_name tensor_payload shape_payload tensorname start_idx length crc32c
dtype shape originalname collections _meta num_workers name include_regex"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON)
def test_json_of_any_kind_is_read_or_refused(content):
    data = json.dumps(content).encode()
    for parse, error in ((parse_index, IndexReaderException), (parse_collections, DamagedFile)):
        try:
            parse(data, file="f")
        except error:
            continue


@given(mutated([next((GOLDEN / "runs").glob("single_worker/collections/*/*")).read_bytes()[:900]]))
def test_a_changed_collections_file_is_read_or_refused(data):
    try:
        parse_collections(data, file="f")
    except DamagedFile:
        return


# A corpus, for the errors of this and of later readers


def corpus(folder):
    return sorted(path for path in (DAMAGED / folder).iterdir())


def named(path: Path):
    return path.stem


@pytest.mark.parametrize("path", corpus("events"), ids=named)
def test_damaged_event_files_are_refused(path):
    with pytest.raises(DamagedFile, match=path.name):
        list(iterate_records(path.read_bytes(), file=path.name))


# The old library counts the steps of these index files: only a value of theirs cannot be read.
WITHOUT_VALUES = {"meta_event_file_empty", "tensor_length_15"}


@pytest.mark.parametrize(
    "path", [path for path in corpus("index") if path.stem not in WITHOUT_VALUES], ids=named
)
def test_damaged_index_files_are_refused(path):
    with pytest.raises(IndexReaderException, match=path.name):
        parse_index(path.read_bytes(), file=path.name)


@pytest.mark.parametrize("stem", sorted(WITHOUT_VALUES))
def test_the_step_of_an_index_file_without_values_counts_and_its_value_is_refused(stem):
    storage = begin(MemoryStorage())
    index = (DAMAGED / "index" / f"{stem}.json").read_bytes()
    storage.write(names.index_key(0, "worker_0"), index)
    if event_file := parse_index(index, file=stem).meta.event_file_name:
        storage.write(event_file, bytes(1000))
    trial = open_trial(storage)
    assert trial.steps() == [0]
    with pytest.raises(DamagedFile):
        trial.tensor(trial.tensor_names()[0]).value(0)


@pytest.mark.parametrize("path", corpus("collections"), ids=named)
def test_damaged_collections_files_are_refused(path):
    with pytest.raises(DamagedFile, match=path.name):
        parse_collections(path.read_bytes(), file=path.name)


def test_every_damaged_file_has_its_line_in_the_readme():
    readme = (DAMAGED / "README.md").read_text()
    for folder in ("events", "index", "collections"):
        for path in corpus(folder):
            assert f"`{folder}/{path.name}`" in readme
