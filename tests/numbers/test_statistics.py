from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smdebug.exceptions import SMDebugTypeError
from smdebug.numbers.statistics import abs_mean, statistics

REAL = [
    np.float64,
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    np.int8,
    np.int64,
    np.uint16,
    np.bool_,
]
SIZES = [1, 2, 255, 256, 257, 1000, (1 << 16) - 1, (1 << 16) + 300, 200_001]


def expected(array):
    """The same numbers by numpy in float64, without any care for speed."""
    wide = array.astype(np.float64).ravel()
    return {
        "size": wide.size,
        "nan": int(np.isnan(wide).sum()),
        "infinite": int(np.isinf(wide).sum()),
        "zeros": int((wide == 0).sum()),
        "min": wide.min(),
        "max": wide.max(),
        "mean": wide.mean(),
        "abs_mean": np.abs(wide).mean(),
        "variance": wide.var(),
        "l1": np.abs(wide).sum(),
        "l2": np.sqrt(np.square(wide).sum()),
    }


def check(array):
    with np.errstate(all="ignore"):
        wanted = expected(array)
    found = statistics(array)._asdict()
    scale = {
        "mean": 1e-9 * wanted["abs_mean"],
        "variance": 1e-12 * wanted["l2"] ** 2 / wanted["size"],
    }
    for name, value in wanted.items():
        if math.isnan(value):
            assert math.isnan(found[name]), name
        else:
            limit = scale.get(name, 0.0)
            assert found[name] == pytest.approx(value, rel=1e-6, abs=limit), name


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("size", SIZES)
def test_all_statistics_are_those_of_float64(dtype, size):
    values = np.random.default_rng(size).normal(3, 20, size)
    check((values > 3 if dtype is np.bool_ else np.abs(values)).astype(dtype))
    if dtype not in (np.bool_, np.uint16):
        check(values.astype(dtype))


@pytest.mark.parametrize("mean", [0.0, 1e-3, 1.0, 1e3, 1e6])
def test_a_small_variance_around_a_large_mean_is_told(mean):
    check((np.random.default_rng(0).normal(size=100_000) + mean).astype(np.float32))
    check(np.random.default_rng(0).normal(size=100_000) + mean)


def test_a_mean_that_is_nothing_beside_the_values_is_right():
    half = np.random.default_rng(0).normal(0, 100, 200_000).astype(np.float32)
    balanced = np.concatenate([half, -half, [1.0]]).astype(np.float32)
    assert statistics(balanced).mean == pytest.approx(1 / balanced.size, rel=1e-6)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-30, 1e30, -7.7])
def test_many_equal_values_add_up_without_an_error_that_grows(value):
    check(np.full(300_000, value, np.float32))


@pytest.mark.parametrize(
    "values",
    [
        [3e38, 3e38, -3e38],
        [1e-45, 0, 1e-44],
        [1e-30] * 300,
    ],
)
def test_the_ends_of_float32_are_told(values):
    check(np.array(values, np.float32))


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_that_float64_cannot_hold_have_a_root(scale):
    found = statistics(np.array([3.0, 4.0]) * scale)
    assert found.l2 == pytest.approx(5 * scale, rel=1e-12)
    assert found.l1 == pytest.approx(7 * scale, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("where", [0, 255, 256, 70_000, 70_001])
def test_what_is_not_finite_is_counted_wherever_it_is(dtype, where):
    values = np.ones(70_002, dtype)
    values[where] = np.nan
    values[(where + 5) % 70_002] = -np.inf
    found = statistics(values)
    assert (found.nan, found.infinite, found.non_finite) == (1, 1, 2)
    assert math.isnan(found.mean)
    assert math.isnan(found.max)
    assert math.isnan(found.l2)
    values[where] = 2
    found = statistics(values)
    assert (found.nan, found.infinite, found.min, found.l2) == (0, 1, -math.inf, math.inf)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.complex64])
@pytest.mark.parametrize("size", [9, 300, (1 << 16) + 9])
@pytest.mark.parametrize("at", [0, -9])
def test_what_is_counted_in_one_block_does_not_hide_another_count(dtype, size, at):
    values = np.ones(size, dtype)
    values[at : at + 8 or None] = [np.nan, 0, np.inf, 0, -np.inf, -0.0, np.nan, 2]
    found = statistics(values)
    assert (found.size, found.nan, found.infinite, found.zeros) == (size, 2, 2, 3)
    assert found.percent_zero == 300 / size


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.float16]),
        st.integers(1, 700),
        elements=st.floats(-1e4, 1e4, width=16),
    )
)
def test_any_values_are_told_as_float64_tells_them(array):
    check(array)
    assert abs_mean(array) == pytest.approx(np.abs(array.astype(np.float64)).mean(), rel=1e-6)


def test_arrays_in_any_order_of_memory_are_told_alike():
    array = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    assert statistics(array.T) == statistics(array)
    check(array[::2, ::3])
    assert statistics(np.float32(2.5)).mean == 2.5


def test_complex_numbers_have_magnitudes():
    found = statistics(np.array([3 + 4j, 0, complex(0, np.inf)]))
    assert (found.zeros, found.infinite) == (1, 1)
    found = statistics(np.array([3 + 4j, 0], np.complex64))
    assert (found.abs_mean, found.l2) == (2.5, 5.0)
    assert math.isnan(found.min)


def test_what_is_empty_has_counts_alone_and_text_has_nothing():
    found = statistics(np.zeros((0, 3), np.float32))
    assert (found.size, found.zeros, found.l1) == (0, 0, 0.0)
    assert math.isnan(found.mean)
    assert math.isnan(abs_mean(np.zeros(0)))
    with pytest.raises(SMDebugTypeError, match="no statistics of <U1"):
        statistics(np.array(["a"]))


def test_what_follows_from_them_is_reported_too():
    found = statistics(np.float32([0, 0, 2, 2]))
    assert (found.std, found.percent_zero) == (1.0, 50.0)
