"""Statistics have the same names and values wherever they come from."""

import numpy as np
import pytest

from smdebug.numbers.rows import COLUMNS, SAMPLE_SIZE, matrix_of
from smdebug.runs.statistics import (
    STATISTICS,
    from_reductions,
    statistics_in_row,
    statistics_of,
    statistics_of_number,
)

ARRAYS = {
    "normal": np.random.default_rng(0).normal(1, 2, (30, 10)).astype(np.float32),
    "with zeros": np.array([0, -3, 2, 0], np.float32),
    "not finite": np.array([1, np.nan, -np.inf, 3], np.float32),
    "nothing finite": np.array([np.nan], np.float32),
    "scalar": np.array(-2.5, np.float32),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_value_and_its_row_have_the_same_statistics(name):
    array = ARRAYS[name]
    row = dict(zip(COLUMNS, matrix_of([array], SAMPLE_SIZE)[0][0].tolist(), strict=True))
    of_value, of_row = statistics_of(array), statistics_in_row(row, "float32", array.shape)
    for statistic in STATISTICS:
        expected = of_value.of(statistic)
        if expected is None:
            assert of_row.of(statistic) is None, statistic
        else:
            assert of_row.of(statistic) == pytest.approx(expected, rel=1e-4, abs=1e-6), statistic
    assert set(of_row.to_dict()) - {"nan", "infinite"} == set(of_value.to_dict()) - {"nan", "infinite"}


@pytest.mark.parametrize("value", [2.5, -1e-9, 0.0, float("nan"), float("inf")])
def test_a_number_has_the_statistics_of_an_array_of_it(value):
    found, expected = statistics_of_number(value), statistics_of(np.array(value))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    for statistic in (*STATISTICS, "nan", "infinite"):
        if expected.of(statistic) is None:
            assert found.of(statistic) is None, statistic
        else:
            assert found.of(statistic) == pytest.approx(expected.of(statistic), rel=1e-6)


def test_a_step_that_lacks_a_tensor_has_no_statistics_of_it():
    row = dict(zip(COLUMNS, matrix_of([None], 4)[0][0].tolist(), strict=True))
    assert statistics_in_row(row, "float32", ()) is None


def test_saved_reductions_are_statistics_under_the_same_names():
    found = from_reductions({("mean", True): np.float32(2), ("variance", False): np.float32(9)})
    assert found.to_dict() == {"abs_mean": 2.0, "std": 3.0}
