import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.numbers.rows import (
    ABSENT,
    COLUMN,
    COLUMNS,
    QUANTILES,
    SAMPLE_BYTES,
    matrix_of,
    sample_size,
    sampled_places,
)
from tests.support.looking import each


def row_of(array):
    matrix, _ = matrix_of([array], 128)
    return dict(zip(COLUMNS, matrix[0].tolist(), strict=True))


def test_a_row_holds_what_numpy_says_of_the_values():
    values = np.random.default_rng(0).normal(3.0, 2.0, (100, 10)).astype(np.float32)
    values[0, :4] = 0
    row = row_of(values)
    assert (row["count"], row["non_finite"], row["zeros"]) == (1000, 0, 4)
    assert row["min"] == values.min()
    assert row["max"] == values.max()
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-6)
    assert row["abs_mean"] == pytest.approx(np.abs(values).mean(), rel=1e-6)
    assert row["rms"] == pytest.approx(np.sqrt((values.astype(float) ** 2).mean()), rel=1e-6)
    assert row["std"] == pytest.approx(values.std(dtype=float), rel=1e-5)
    assert row["p50"] == pytest.approx(np.median(values), abs=1)


def test_what_is_not_finite_is_counted_and_left_out_of_the_rest():
    row = row_of(np.array([1.0, np.nan, np.inf, -3.0, 0.0]))
    assert (row["count"], row["non_finite"], row["zeros"]) == (5, 2, 1)
    assert (row["min"], row["max"]) == (-3.0, 1.0)
    assert row["mean"] == pytest.approx(-2 / 3)
    assert np.isfinite([row[f"p{round(100 * q):02d}"] for q in QUANTILES]).all()


@pytest.mark.parametrize("array", [np.array([], np.float32), np.full(3, np.nan)])
def test_where_no_value_is_finite_there_are_counts_alone(array):
    row = row_of(array)
    assert row.pop("count") == row.pop("non_finite") == array.size
    assert row.pop("zeros") == 0
    assert np.isnan(list(row.values())).all()


@pytest.mark.parametrize("absent", [None, np.array(["text"]), np.array([1j])])
def test_a_tensor_without_real_numbers_has_the_absent_row(absent):
    matrix, samples = matrix_of([absent, np.ones(2)], 4)
    np.testing.assert_array_equal(matrix[0], ABSENT)
    assert matrix[1, COLUMN["count"]] == 2
    assert np.isnan(samples[0]).all()


@given(st.integers(0, 10**9), st.integers(1, 128))
def test_sampled_places_lie_within_the_tensor_in_order_and_once_each(count, size):
    places = sampled_places(count, size)
    assert len(places) == min(count, size)
    assert (np.diff(places) > 0).all()
    assert not len(places) or (places[0] >= 0 and places[-1] < count)


def test_a_sample_of_a_matrix_meets_many_of_its_columns():
    columns = sampled_places(512 * 512, 128) % 512
    assert len(set(columns.tolist())) > 100


@given(arrays.arrays(np.float32, st.integers(1, 60), elements=st.floats(-10, 10, width=32)))
def test_quantiles_of_a_small_tensor_are_those_of_all_its_values(values):
    row = row_of(values)
    for quantile in each(QUANTILES, at_least=7):
        expected = np.quantile(values.astype(np.float64), quantile)
        assert row[f"p{round(100 * quantile):02d}"] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("tensors", [0, 1, 500, 5_000, 60_000])
def test_the_samples_of_a_step_stay_within_their_budget(tensors):
    assert sample_size(tensors) * tensors * 4 <= SAMPLE_BYTES
    assert sample_size(tensors) >= 1
