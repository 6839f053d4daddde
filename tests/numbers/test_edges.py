"""Reductions and statistics at the edges: types, blocks, very large and very small values."""

import math

import ml_dtypes
import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError
from smdebug.numbers import packed
from smdebug.numbers.packed import Scratch, digests_together, measure_end_to_end, measure_together
from smdebug.numbers.reductions import (
    REDUCTION_NAMES,
    compute_reduction,
    compute_reductions,
    get_numpy_reduction,
    get_reduction_tensor_name,
)
from smdebug.numbers.rows import SAMPLE_SIZE, measured, sample_of
from smdebug.numbers.statistics import abs_mean, is_numeric, statistics

BLOCK = 1 << 15


def test_values_keep_their_sign_unless_magnitudes_are_asked_for():
    value = np.array([-3.0, 1.0])
    assert get_numpy_reduction("mean", value) == compute_reduction("mean", value) == -1
    assert get_numpy_reduction("mean", value, True) == compute_reduction("mean", value, True) == 2
    assert get_reduction_tensor_name("w:0", "mean", False) == "smdebug/reductions/mean/w"


@pytest.mark.parametrize("reduction", ["mean", "sum", "std"])
def test_256_values_are_reduced_as_before_and_more_in_float64(reduction):
    """A sum in float32 and one in float64 that is rounded differ in the last bit, now and then."""
    by_numpy = {"mean": np.mean, "sum": np.sum, "std": np.std}[reduction]
    as_before = as_float64 = 0
    for seed in range(40):
        value = np.random.default_rng(seed).normal(3, 2, 257).astype(np.float32)
        small = value[:256]
        assert compute_reduction(reduction, small) == by_numpy(small)
        exact = np.float32(by_numpy(value.astype(np.float64)))
        assert compute_reduction(reduction, value) == exact
        as_before += by_numpy(small) != np.float32(by_numpy(small.astype(np.float64)))
        as_float64 += by_numpy(value) != exact
    assert as_before > 3
    assert as_float64 > 3


@pytest.mark.parametrize(
    ("reduction", "value", "magnitude", "result", "dtype"),
    [
        ("max", np.int8([-128, 3]), True, 128, np.uint8),
        ("max", np.int8([-127, 3]), True, 127, np.int8),
        ("min", np.int8([-127, 3]), True, 3, np.int8),
        ("max", np.int32([-7, 3]), True, 7, np.int32),
        ("max", np.uint8([200, 3]), True, 200, np.uint8),
        ("sum", np.int8([-100, -100]), True, 200, np.int64),
        ("sum", np.int64([-(2**63) + 1, 0]), True, 2**63 - 1, np.int64),
        ("sum", np.int64([-(2**63), 0]), True, 2**63, np.uint64),
        ("sum", np.uint64([2**63, 5]), False, 2**63 + 5, np.uint64),
        ("sum", np.int64([2**53, 1, 1, 1]), False, 2**53 + 3, np.int64),
        ("sum", np.int64([0, 0]), False, 0, np.int64),
        ("prod", np.int64([3**30, 2]), False, 2 * 3**30, np.int64),
        ("prod", np.int8([-5, 3]), True, 15, np.int64),
        ("mean", np.int8([-128, -126]), True, 127.0, np.float64),
        ("median", np.int8([-128, -126]), True, 127.0, np.float64),
        ("l1", np.int8([-128, -128]), False, 256.0, np.float64),
    ],
)
def test_whole_numbers_have_whole_results_where_their_type_holds_them(
    reduction, value, magnitude, result, dtype
):
    found = compute_reduction(reduction, value, magnitude)
    assert (found, found.dtype) == (result, dtype)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("order", [1, -1])
def test_spreads_and_norms_of_very_large_and_small_values_count_every_block(scale, order):
    small, large = np.full(BLOCK, 1.0), np.full(BLOCK, 3.0)
    value = np.concatenate([small, large][::order])
    assert compute_reduction("std", value * scale) == pytest.approx(scale, rel=1e-9)
    assert compute_reduction("std", -value * scale) == pytest.approx(scale, rel=1e-9)
    assert compute_reduction("l2", value * scale) == pytest.approx(np.sqrt(10 * BLOCK) * scale, rel=1e-9)
    assert compute_reduction("std", value * [scale], abs=True) == pytest.approx(scale, rel=1e-9)


def test_norms_and_spreads_of_very_small_complex_numbers_are_not_lost():
    value = np.array([3 + 4j, 0]) * 1e-200
    assert compute_reduction("l2", value) == pytest.approx(5e-200)
    assert compute_reduction("std", value) == pytest.approx(2.5e-200)


@pytest.mark.parametrize("value", [[np.inf, 1.0], [-np.inf, 1.0]])
def test_a_norm_of_an_infinite_value_is_infinite(value):
    assert compute_reduction("l2", np.array(value)) == np.inf
    assert np.isnan(compute_reduction("std", np.array(value)))


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.float16])
@pytest.mark.parametrize("magnitude", [False, True])
def test_every_block_counts(size, dtype, magnitude):
    value = (np.arange(size) % 1000 - 300).astype(dtype)
    wide = np.abs(value.astype(np.float64)) if magnitude else value.astype(np.float64)
    wanted = [(name, magnitude) for name in REDUCTION_NAMES if name not in ("prod", "sum")]
    found = compute_reductions(value, wanted)
    exact = [wide.min(), wide.max(), wide.mean(), wide.std(), wide.var(), np.median(wide)]
    exact += [np.abs(wide).sum(), np.sqrt((wide**2).sum())]
    tolerance = 1e-3 if dtype is np.float16 else 1e-6
    assert [float(number) for number in found.values()] == pytest.approx(exact, rel=tolerance)


@pytest.mark.parametrize(
    ("value", "median"),
    [
        ([1.7e308, 1.6e308], 1.65e308),
        ([3.0, 1.0, 2.0], 2.0),
        ([4.0, 1.0, 2.0, 9.0], 3.0),
        ([7.0], 7.0),
        ([2 + 1j, 1 + 9j, 1 + 2j, 5j], 1 + 5.5j),
        ([2 + 1j, 1 + 9j, 5j], 1 + 9j),
        ([np.inf, np.inf, 0.0, np.inf], np.inf),
    ],
)
def test_the_median_lies_in_the_middle(value, median):
    assert compute_reduction("median", np.array(value)) == pytest.approx(median)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_the_median_of_numbers_with_nan_is_nan(dtype):
    for values in ([1.0, np.nan, 3.0], [np.nan, 1.0, 3.0, 4.0]):
        assert np.isnan(compute_reduction("median", np.array(values, dtype)))


@pytest.mark.parametrize(
    ("array", "is_one"),
    [
        (np.zeros(1, np.bool_), True),
        (np.zeros(1, np.uint8), True),
        (np.zeros(1, np.complex64), True),
        (np.zeros(1, ml_dtypes.bfloat16), True),
        (np.zeros(1, ml_dtypes.float8_e4m3fn), True),
        (np.zeros(1, ml_dtypes.int4), False),
        (np.array(["a"]), False),
        (np.array([None]), False),
        (np.array(["2020-01-01"], "datetime64[D]"), False),
    ],
)
def test_numbers_have_statistics_and_reductions(array, is_one):
    assert is_numeric(array) == is_one
    if is_one:
        assert statistics(array).zeros == 1
        assert compute_reduction("mean", array) == 0
    else:
        with pytest.raises(SMDebugTypeError, match="There are no statistics of"):
            statistics(array)
        with pytest.raises(SMDebugTypeError, match=r"There is no mean of .* values: they are not numbers"):
            compute_reduction("mean", array)


def test_values_that_are_all_infinite_have_no_variance():
    found = statistics(np.array([np.inf, np.inf]))
    assert math.isnan(found.variance)
    assert (found.min, found.max, found.mean, found.l1, found.l2) == (np.inf,) * 5


def test_complex_numbers_have_a_variance_and_norms():
    value = np.array([3 + 4j, 0, -6j, 1])
    found = statistics(value)
    assert found.variance == pytest.approx(np.var(value))
    assert found.l1 == pytest.approx(12)
    assert found.l2 == pytest.approx(np.sqrt(62))
    assert found.abs_mean == pytest.approx(3)
    assert math.isnan(found.mean)
    assert math.isnan(found.max)
    assert abs_mean(value) == pytest.approx(3)
    assert abs_mean(np.complex64(value)) == pytest.approx(3)


@pytest.mark.parametrize("size", [255, 256, 8191, 8192, 8193, 1 << 18, (1 << 18) + 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32])
def test_the_mean_of_magnitudes_counts_every_value(size, dtype):
    value = (np.arange(size) % 7 - 3).astype(dtype)
    assert abs_mean(value) == pytest.approx(np.abs(value.astype(float)).mean(), rel=1e-6)


PARTS = [np.float32(np.random.default_rng(0).normal(size=300)), np.arange(5, dtype=np.float32)]


@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
def test_parts_of_small_numbers_are_measured_together(bad, monkeypatch):
    parts = [part.copy() for part in PARTS]
    if bad is None:
        monkeypatch.setattr(packed, "measure_together", lambda *_: pytest.fail("one after another"))
    else:
        parts[0][20] = bad
    found = measure_end_to_end(parts, [100, 200, 5], Scratch())
    given = [parts[0][:100], parts[0][100:], parts[1]]
    np.testing.assert_allclose(found.numbers, [measured(part) for part in given], rtol=1e-5)
    for sample, part in zip(found.samples, given, strict=True):
        expected = sample_of(part, SAMPLE_SIZE)
        np.testing.assert_array_equal(sample[: expected.size], expected)
        assert np.isnan(sample[expected.size :]).all()


def test_parts_of_large_numbers_are_measured_one_after_another():
    parts = [PARTS[1], np.array([1e200, 3e200])]
    found = measure_end_to_end(parts, [5, 2], Scratch())
    np.testing.assert_allclose(found.numbers[:, 7], [np.sqrt(6), np.sqrt(5) * 1e200])


def test_memory_that_was_used_before_changes_nothing():
    scratch = Scratch()
    measure_together([PARTS[0]], scratch)
    again = measure_together([PARTS[1]], scratch)
    np.testing.assert_array_equal(again.numbers, measure_together([PARTS[1]]).numbers)
    assert scratch.of(7)[0].shape == scratch.of(7)[1].shape == (7,)


def test_arrays_around_the_size_that_is_measured_alone_have_the_same_rows():
    arrays = [np.arange(size, dtype=np.float32) % 9 for size in ((1 << 17) - 1, 1 << 17, (1 << 17) + 1)]
    found = measure_together([*arrays, *arrays[::-1]])
    np.testing.assert_allclose(found.numbers[:3], [measured(array) for array in arrays], rtol=1e-5)
    np.testing.assert_array_equal(found.numbers[3:], found.numbers[:3][::-1])
    np.testing.assert_array_equal(digests_together(arrays)[::-1], digests_together(arrays[::-1]))
