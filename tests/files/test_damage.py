"""Damaged bytes: always a typed error that says where, never a wrong value, never for long."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import DamagedFile
from smdebug.files.checksum import crc32c
from smdebug.files.event_reading import (
    decode_event,
    iterate_records,
    read_record,
    read_value,
)
from smdebug.files.event_writing import encode_event
from smdebug.files.framing import frame
from smdebug.files.wire import delimited, varint
from smdebug.mode_keys import ModeKeys
from tests.support.looking import each

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
    return delimited(b"\x12", b"".join(delimited(b"\x12", b"\x08" + varint(size)) for size in sizes))


def assert_refused(record, crc=None):
    for read in (read_record, read_value):
        with pytest.raises(DamagedFile) as caught:
            read(record, file="events/300.tfevents", name=NAME, step=300, crc32c=crc)
        error = caught.value
        assert (error.file, error.tensor, error.step) == ("events/300.tfevents", NAME, 300)
        assert error.problem


@pytest.mark.parametrize("checksum", ["constant", "tfrecord"])
@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_every_flipped_bit_is_detected_with_a_checksum_in_the_index(array, checksum):
    record, crc = encoded(array, checksum)
    for bit in each(range(len(record) * 8), at_least=700):
        # The undamaged one in between, so that the damaged one is compared with what is remembered.
        good = read_value(record, file="f", name=NAME, step=300, crc32c=crc)
        assert good.tobytes() == array.tobytes()
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged), crc)


@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_every_flipped_bit_is_detected_with_a_true_footer(array):
    record, _ = encoded(array, "tfrecord")
    for bit in range(len(record) * 8):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged))


@pytest.mark.parametrize("step", [300, 0])
@pytest.mark.parametrize("array", SMALL.values(), ids=SMALL)
def test_slow_and_fast_path_agree_on_a_flipped_bit_without_checksum(array, step):
    record, _ = encoded(array)
    for bit in each(range(len(record) * 8), at_least=700):
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
def test_a_record_that_is_too_short_or_too_long_is_refused(array, with_crc):
    record, crc = encoded(array)
    read_value(record, file="f", name=NAME, step=300)
    crc = crc if with_crc else None
    for end in range(len(record)):
        assert_refused(record[:end], crc)
    assert_refused(record + b"\0", crc)
    assert_refused(b"\0" + record, crc)


@pytest.mark.parametrize("checksum", ["constant", "tfrecord"])
def test_every_flipped_bit_of_a_large_record_is_detected(checksum):
    record, crc = encoded(LARGE, checksum)
    for bit in each(bits_around_the_content(record), at_least=1000):
        good = read_value(record, file="f", name=NAME, step=300, crc32c=crc)
        assert good.tobytes() == LARGE.tobytes()
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(damaged), crc)


@pytest.mark.parametrize("step", [300, 0])
def test_slow_and_fast_path_agree_on_a_large_record_without_checksum(step):
    record, _ = encoded(LARGE)
    for bit in each(bits_around_the_content(record), at_least=1000):
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
    """All bits before and after the content, and some of its own."""
    content = record.index(LARGE.tobytes()[4:])
    behind = content + LARGE.nbytes
    within = range(content, behind, LARGE.nbytes // 20)
    return [
        8 * byte + bit
        for byte in (*range(content), *within, *range(behind - 4, len(record)))
        for bit in range(8)
    ]


def test_a_truncated_file_is_refused_wherever_it_ends():
    records = [encoded(array)[0] for array in SMALL.values()]
    whole, ends = b"".join(records), {0}
    for record in records:
        ends.add(max(ends) + len(record))
    for end in each(range(len(whole)), at_least=500):
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


def test_another_tensor_of_the_same_length_is_read_correctly():
    name = "same length"
    first = b"".join(encode_event(name, np.zeros((2, 3), np.int32), **MOMENT).pieces)
    second = b"".join(encode_event(name, np.ones((3, 2), np.uint32), **MOMENT).pieces)
    assert len(first) == len(second)
    for record, shape, dtype in ((first, (2, 3), "int32"), (second, (3, 2), "uint32")) * 2:
        value = read_value(record, file="f", name=name, step=300)
        assert (value.shape, value.dtype) == (shape, dtype)


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
    "a mode step that is not a number": event_of(
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
def test_an_inconsistent_message_is_refused(payload):
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
