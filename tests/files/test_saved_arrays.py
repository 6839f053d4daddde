"""Which values can be saved as tensors, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.event_reading import (
    read_record,
    read_value,
)
from smdebug.files.event_writing import as_saved_array, encode_event
from tests.files.records import MOMENT, same, written


@pytest.mark.parametrize(
    ("array", "comes_back_as"),
    [
        (np.array("one"), np.array("one")),
        (np.array([["a", "b"], ["", "ü"]]), np.array([["a", "b"], ["", "ü"]])),
        (np.array([b"bytes", "é".encode()]), np.array(["bytes", "é"])),
        (np.array(["a", b"b"], object), np.array(["a", "b"])),
        (np.array([], object), np.array([], "U1")),
        (np.zeros((0, 3), "U4"), np.zeros((0, 3), "U1")),
        (np.array(["", ""]), np.array(["", ""])),
        (np.array(["nul\0"], object), np.array(["nul\0"], object)),
    ],
)
def test_strings_of_every_shape_and_bytes_are_saved_as_text(array, comes_back_as):
    assert same(read_value(written("t", array), file="f", name="t", step=3), comes_back_as)


def test_strings_of_very_different_lengths_do_not_blow_up_the_memory():
    strings = np.array(["x" * 1_000_000, *[""] * 5000], object)  # 20 GB if each took the longest's room
    value = read_value(written("t", strings), file="f", name="t", step=3)
    assert value.dtype == object
    assert value.tolist() == strings.tolist()


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "a"], object),
        np.array([None]),
        np.array({"a": 1}),
        np.array([b"\xff"]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, "f4,i4"),
        np.zeros(2, np.longdouble),
    ],
)
def test_an_unsupported_type_is_refused_by_name(array):
    with pytest.raises(SMDebugTypeError):
        encode_event("x", array, **MOMENT)


@pytest.mark.parametrize("name", ["", "nul\0", "half \ud800"])
def test_a_name_that_cannot_be_read_back_is_not_written(name):
    with pytest.raises(SMDebugValueError, match="name of a tensor"):
        encode_event(name, np.zeros(1), **MOMENT)


def test_half_a_surrogate_pair_is_not_written():
    with pytest.raises(SMDebugValueError, match="not Unicode"):
        encode_event("x", np.array(["\udc00"]), **MOMENT)


def test_steps_have_64_bits():
    for wrong in ({"step": 2**63}, {"mode_step": -(2**63) - 1}):
        with pytest.raises(SMDebugValueError, match="64 bits"):
            encode_event("x", np.zeros(1), **{**MOMENT, **wrong})
    assert read_record(written("x", np.zeros(1), step=-1), file="f").step == -1


@pytest.mark.parametrize(
    ("value", "array"),
    [
        (3, np.array([3])),
        (2.5, np.array([2.5])),
        (True, np.array([True])),
        (1j, np.array([1j])),
        ("text", np.array(["text"])),
        (b"bytes", np.array([b"bytes"])),
        (np.float32(1), np.array([1], np.float32)),
        ([1, 2], np.array([1, 2])),
        (((1.0,), (2.0,)), np.array([[1.0], [2.0]])),
        ([], np.array([])),
        (np.zeros(()), np.zeros(())),
    ],
)
def test_numbers_text_and_sequences_can_be_saved(value, array):
    saved = as_saved_array(value)
    assert saved.dtype == array.dtype
    assert saved.shape == array.shape
    assert saved.tolist() == array.tolist()


def test_an_array_is_saved_itself():
    array = np.zeros(3)
    assert as_saved_array(array) is array


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"a": 1},
        {1, 2},
        object(),
        [None],
        [1, "a", object()],
        [[1], [1, 2]],
        b"\xff",
        np.datetime64(1, "s"),
    ],
)
def test_other_values_than_numbers_and_text_are_a_type_error(value):
    with pytest.raises(SMDebugTypeError):
        as_saved_array(value)


def test_integers_beyond_64_bits_are_a_type_error():
    with pytest.raises(SMDebugTypeError):
        as_saved_array(2**70)
