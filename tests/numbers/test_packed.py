"""Arrays that are measured together have the rows, samples and digests that each has alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.numbers import packed
from smdebug.numbers.digests import content_digest
from smdebug.numbers.packed import (
    Scratch,
    digests_together,
    measure_end_to_end,
    measure_together,
)
from smdebug.numbers.rows import MEASURED, SAMPLE_SIZE, measured, sample_of

RANDOM = np.random.default_rng(0)
ARRAYS = [
    RANDOM.normal(size=(20, 30)).astype(np.float32),
    np.array([1, np.nan, -2, np.inf, 0], np.float32),
    np.empty(0, np.float32),
    np.full(1000, 0.1, np.float32),
    np.array(3.5),
    np.array([True, False, False]),
    np.full(4, np.nan, np.float16),
    RANDOM.normal(size=50) * 1e200,
    np.arange(12).reshape(3, 4).T,
    np.maximum(RANDOM.normal(size=400), 0).astype(np.float16),
]


def check(found, given):
    for array, numbers, sample in zip(given, *found, strict=True):
        np.testing.assert_allclose(numbers, measured(array), rtol=1e-5, atol=1e-7)
        expected = sample_of(array, SAMPLE_SIZE)
        np.testing.assert_array_equal(sample[: expected.size], expected)
        assert np.isnan(sample[expected.size :]).all()


@pytest.mark.parametrize("together", [1, 700, 1 << 17])
def test_rows_and_samples_are_those_of_each_array(together, monkeypatch):
    monkeypatch.setattr(packed, "_VALUES_TOGETHER", together)
    check(measure_together(ARRAYS), ARRAYS)


@pytest.mark.parametrize("together", [1, 700, 1 << 17])
@pytest.mark.parametrize("left_out", [(), (1, 2, 6, 7)])
def test_arrays_end_to_end_have_the_rows_of_each(together, left_out, monkeypatch):
    monkeypatch.setattr(packed, "_VALUES_TOGETHER", together)
    given = [array for place, array in enumerate(ARRAYS) if place not in left_out]
    flat = [array.reshape(-1) for array in given]
    joined = np.concatenate([flat[0], flat[0][:7], flat[0][:0]])
    sizes = [flat[0].size, 7, 0, *(array.size for array in flat[1:])]
    check(
        measure_end_to_end([joined, *flat[1:]], sizes, Scratch()),
        [flat[0], flat[0][:7], flat[0][:0], *flat[1:]],
    )
    assert measure_end_to_end([], [], Scratch()).numbers.shape == (0, len(MEASURED))


def test_equal_values_have_no_spread():
    row = dict(zip(MEASURED, measure_together(ARRAYS).numbers[3], strict=True))
    assert row["std"] == 0


def test_digests_are_those_of_each_array(monkeypatch):
    expected = [content_digest(array) for array in ARRAYS]
    assert list(map(tuple, digests_together(ARRAYS).tolist())) == expected
    monkeypatch.setattr(packed, "WORDS_IN_A_BLOCK", 10)  # most are digested alone
    assert list(map(tuple, digests_together(ARRAYS).tolist())) == expected


def test_no_arrays_have_no_rows():
    assert measure_together([]).numbers.shape == (0, len(MEASURED))
    assert digests_together([]).shape == (0, 2)


VALUES = arrays.arrays(
    np.float32,
    arrays.array_shapes(max_dims=2, min_side=0, max_side=30),
    elements=st.floats(width=32, min_value=-100, max_value=100) | st.just(float("nan")),
)


@given(st.lists(VALUES, max_size=5))
def test_any_arrays_have_the_rows_and_digests_of_each(given_arrays):
    found = measure_together(given_arrays)
    for array, numbers in zip(given_arrays, found.numbers, strict=True):
        np.testing.assert_allclose(numbers, measured(array), rtol=1e-4, atol=1e-4)
    expected = [content_digest(array) for array in given_arrays]
    assert list(map(tuple, digests_together(given_arrays).tolist())) == expected
