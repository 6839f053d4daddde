"""Tensors whose parts lie in several processes have the numbers of the whole."""

import numpy as np
import pytest

from smdebug.numbers.rows import (
    COLUMN,
    COLUMNS,
    MEASURED,
    QUANTILES,
    combined,
    matrix_of,
    measured,
    quantiles_of,
    sample_of,
)

RANDOM = np.random.default_rng(0)
ABSENT = [np.nan] * len(MEASURED)


def rows_of(*parts):
    """[parts, tensors, numbers] of one tensor."""
    return np.array([[ABSENT if part is None else measured(np.array(part, float))] for part in parts])


def check(*parts):
    whole = np.concatenate([np.array(part, float) for part in parts if part is not None])
    np.testing.assert_allclose(combined(rows_of(*parts))[0], measured(whole), rtol=1e-6, atol=1e-300)


SPREAD = RANDOM.normal(3, 2, 90)


@pytest.mark.parametrize(
    "parts",
    [
        [SPREAD],
        [SPREAD[:50], SPREAD[50:60], SPREAD[60:]],
        [SPREAD, None],
        [None, SPREAD[:9], SPREAD],
        [[1.0, -3.0, 0.0], [2.0, 8.0]],
        [[-8.0, 0.0, 0.0], [0.0]],
        [[1.0, np.nan, np.inf, 0.0], [3.0]],
        [[np.nan, np.nan], [3.0, 5.0]],
        [[], [3.0, 5.0]],
        [[np.nan], [np.inf]],
        [[0.0, 0.0], [0.0]],
        [[1.0, 2.0], [1e-200]],
    ],
)
def test_numbers_of_parts_give_those_of_the_whole(parts):
    check(*parts)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_that_float64_cannot_hold_are_put_together(scale):
    found = dict(zip(MEASURED, combined(rows_of([3 * scale], [4 * scale]))[0], strict=True))
    assert found["rms"] == pytest.approx(np.sqrt(12.5) * scale)
    assert found["std"] == pytest.approx(0.5 * scale)
    assert found["mean"] == pytest.approx(3.5 * scale)


def test_each_tensor_is_put_together_from_its_own_parts():
    small, large = rows_of([1.0, 5.0], [3.0]), rows_of([1e200], [0.0, 7e200])
    together = combined(np.concatenate([small, large, small], axis=1))
    assert together.shape == (3, len(MEASURED))
    np.testing.assert_array_equal(together[0], combined(small)[0])
    np.testing.assert_array_equal(together[1], combined(large)[0])
    np.testing.assert_array_equal(together[2], together[0])


def test_where_no_part_exists_nothing_is_known():
    found = dict(zip(MEASURED, combined(rows_of(None, None))[0], strict=True))
    assert (found.pop("count"), found.pop("non_finite"), found.pop("zeros")) == (0, 0, 0)
    assert np.isnan(list(found.values())).all()


def test_columns_have_their_names():
    assert COLUMNS[9:] == ("p01", "p05", "p25", "p50", "p75", "p95", "p99")
    assert COLUMN["p50"] == 12


def test_quantiles_lie_between_the_finite_values_of_a_sample():
    samples = np.array(
        [[4.0, np.nan, 0.0, 2.0], [7.0, np.inf, np.nan, -np.inf], [np.nan] * 4, [1.0, 2.0, 3.0, 4.0]],
        np.float32,
    )
    found = quantiles_of(samples)
    np.testing.assert_allclose(found[0], np.array(QUANTILES) * 4, rtol=1e-6)
    assert (found[1] == 7).all()
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(found[3], 1 + 3 * np.array(QUANTILES), rtol=1e-6)
    assert quantiles_of(np.empty((2, 0), np.float32)).shape == (2, len(QUANTILES))
    assert np.isnan(quantiles_of(np.empty((2, 0), np.float32))).all()
    assert quantiles_of(np.empty((0, 4), np.float32)).shape == (0, len(QUANTILES))


def test_a_tensor_of_one_value_has_it_in_every_column():
    matrix, samples = matrix_of([np.array(2.0)], 3)
    assert matrix[0, COLUMN["count"]] == 1
    assert (matrix[0, COLUMN["min"] : COLUMN["rms"] + 1] == 2).all()
    assert (matrix[0, COLUMN["p01"] :] == 2).all()
    assert samples[0, 0] == 2
    assert np.isnan(samples[0, 1:]).all()


def test_what_float32_cannot_hold_is_infinite_in_a_row_without_a_warning():
    values = np.array([1e300, 2.0])
    assert sample_of(values, 4).tolist() == [np.inf, 2.0]
    matrix, _ = matrix_of([values], 4)
    assert matrix[0, COLUMN["max"]] == np.inf
    assert matrix[0, COLUMN["min"]] == 2


def test_a_sample_is_taken_where_its_places_are():
    values = np.arange(20.0).reshape(4, 5)
    assert sample_of(values, 100).tolist() == list(range(20))
    assert sample_of(values.T, 100).tolist() == values.T.reshape(-1).tolist()
    assert sample_of(values, 4).tolist() == [0, 8, 11, 19]
