from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.numbers.conditions import (
    NonFinite,
    all_close,
    count_non_finite,
    count_zeros,
    max_abs_difference,
    mean_abs_difference,
)

DTYPES = ["float16", "float32", "float64", "complex64", "complex128", "int32", "uint8", "bool"]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ANY = st.sampled_from(DTYPES).flatmap(lambda dtype: arrays.arrays(dtype, SHAPES))


@given(ANY)
def test_non_finite_values_are_counted_as_numpy_counts_them(value):
    nan = int(np.isnan(value).sum())
    infinite = int((~np.isfinite(value)).sum()) - nan
    assert count_non_finite(value) == NonFinite(nan, infinite)


@given(ANY)
def test_zeros_are_counted_as_numpy_counts_them(value):
    assert count_zeros(value) == int((value == 0).sum())


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: SHAPES.flatmap(
            lambda shape: st.tuples(arrays.arrays(dtype, shape), arrays.arrays(dtype, shape))
        )
    ),
    st.booleans(),
)
def test_closeness_is_numpys(pair, equal_nan):
    value, other = (x.astype(np.float32) if x.dtype == np.float16 else x for x in pair)
    with np.errstate(all="ignore"):
        expected = np.allclose(value, other, equal_nan=equal_nan)
    assert all_close(*pair, equal_nan=equal_nan) == expected


@given(
    arrays.arrays(np.float32, 3, elements=st.sampled_from([-1.0, 0.0, 1.0, np.inf, -np.inf, np.nan])),
    arrays.arrays(np.float32, 3, elements=st.sampled_from([-1.0, 0.0, 1.0, np.inf, -np.inf, np.nan])),
    st.sampled_from([0.0, 1e-5, 1.0, 2.0]),
)
def test_what_is_finite_is_not_close_to_infinity_however_much_is_tolerated(value, other, rtol):
    with np.errstate(all="ignore"):
        expected = np.allclose(value, other, rtol=rtol, atol=0.0)
    assert all_close(value, other, rtol=rtol, atol=0.0) == expected


@given(
    arrays.arrays(np.float32, 5, elements=st.floats(-(2.0**90), 2.0**90, width=32)),
    st.sampled_from([0.0, 1e-7, 3e-7, 1e-5, 0.5, 2.0]),
    st.floats(0.99, 1.01) | st.floats(-2, 4),
)
def test_what_is_just_within_the_limit_is_told_as_numpy_tells_it(other, rtol, part):
    """Also where the two lie apart by the tolerance itself, to the last bit."""
    value = (other * np.float32(1 + part * rtol)).astype(np.float32)
    exact = np.abs(value.astype(np.float64) - other) <= rtol * np.abs(other.astype(np.float64))
    assert all_close(value, other, rtol=rtol, atol=0.0) in (
        bool(exact.all()),
        bool(np.allclose(value, other, rtol=rtol, atol=0.0)),
    )


def test_a_finite_tensor_whose_squares_overflow_is_finite():
    assert count_non_finite(np.full(10, 1e30, np.float32)) == NonFinite(0, 0)
    assert count_non_finite(np.full(10, 1e200)) == NonFinite(0, 0)


def test_one_bad_value_among_many_is_found():
    value = np.zeros(200_000, ml_dtypes.bfloat16)
    value[150_000], value[199_999] = np.nan, -np.inf
    assert count_non_finite(value) == NonFinite(1, 1)
    assert count_zeros(value) == 199_998


def test_other_shapes_and_other_texts_are_different():
    assert not all_close(np.zeros((2, 1)), np.zeros((1, 2)))
    assert all_close(np.array(["a", "b"]), np.array(["a", "b"]))
    assert not all_close(np.array(["a", "b"]), np.array(["a", "c"]))
    assert not all_close(np.array(["a"]), np.array([1.0]))


def test_differences_do_not_wrap_around_in_small_integers():
    value, other = np.array([0, 255], np.uint8), np.array([255, 0], np.uint8)
    assert mean_abs_difference(value, other) == 255
    assert max_abs_difference(value, other) == 255


@pytest.mark.parametrize(
    ("value", "other", "largest"),
    [
        ([1.0, np.nan], [1.5, np.nan], 0.5),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([np.inf], [-np.inf], np.inf),
    ],
)
def test_the_largest_difference_knows_nan_and_infinity(value, other, largest):
    assert max_abs_difference(np.array(value), np.array(other)) == largest


def test_text_has_no_zeros_and_nothing_that_is_not_finite():
    for text in (np.array(["", "a"]), np.array([b""]), np.array([None, 0.0])):
        assert count_zeros(text) == 0
        assert count_non_finite(text) == NonFinite(0, 0)


def test_what_is_not_finite_is_counted_in_every_block():
    value = np.ones(3 * (1 << 16))
    value[[5, 70_000, 70_001, 150_000]] = np.nan
    value[[6, 70_002]] = np.inf, -np.inf
    assert count_non_finite(value) == NonFinite(4, 2)


def test_complex_numbers_are_closer_or_further_by_their_magnitude():
    value, other = np.array([3 + 4j, 1]), np.array([0j, 1])
    assert mean_abs_difference(value, other) == 2.5
    assert mean_abs_difference(value, np.zeros(2)) == 3.0
    assert mean_abs_difference(np.zeros(2), value) == 3.0
    assert max_abs_difference(value, np.zeros(2)) == 5.0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_differences_of_16_bit_types_are_not_rounded(dtype):
    value, other = np.array([60_000, 1], dtype), np.array([-60_000, 1], dtype)
    exact = 2 * float(value[0])
    assert max_abs_difference(value, other) == exact
    assert mean_abs_difference(value, other) == exact / 2
    assert count_non_finite(np.full(10, 60_000, dtype)) == NonFinite(0, 0)
    assert all_close(value, value)
    assert not all_close(value, other)


def test_differences_in_later_blocks_count():
    value = np.zeros(200_000, np.float32)
    other = value.copy()
    other[[70_000, 199_999]] = 3, -5
    assert mean_abs_difference(value, other) == 8 / 200_000
    assert max_abs_difference(value, other) == 5
    assert not all_close(value, other)
    assert max_abs_difference(np.zeros(0), np.zeros(0)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "other", "options", "are_close"),
    [
        (1.0, 1.000009, {}, True),
        (1.0, 1.000012, {}, False),
        (0.0, 0.9e-8, {}, True),
        (0.0, 1.1e-8, {}, False),
        (1.0, 1.05, {"rtol": 0.1}, True),
        (1.0, 1.2, {"rtol": 0.1}, False),
        (0.0, 0.5, {"atol": 0.6}, True),
        (0.0, 0.5, {"atol": 0.4}, False),
        (0.0, 0.5, {"atol": 0.1}, False),
        (np.nan, np.nan, {}, False),
        (np.nan, np.nan, {"equal_nan": True}, True),
        (-1.0, -1.000009, {}, True),
        (1.0, -1.0, {"rtol": 1.9}, False),
        (1.0, -1.0, {"rtol": 2.1}, True),
    ],
)
def test_numbers_are_close_by_a_share_or_by_an_amount(value, other, options, are_close, dtype):
    beside = [2.0, 3.0]
    for place in range(3):
        values, others = beside.copy(), beside.copy()
        values.insert(place, value)
        others.insert(place, other)
        assert all_close(np.array(values, dtype), np.array(others, dtype), **options) is are_close


def test_types_that_differ_are_compared_by_their_numbers():
    assert all_close(np.float32([1, 2]), np.array([1.0, 2.0]))
    assert not all_close(np.float32([1, 2]), np.array([1.0, 2.1]))
    assert all_close(np.array([1.0, 2.0]), np.float32([1, 2]))
    assert all_close(np.array([1, 2]), np.float32([1, 2]))
    assert not all_close(np.array(["1"]), np.array([b"1"]))
    assert all_close(np.zeros((0, 2)), np.zeros((0, 2)))
