"""What a notebook shows of what a trial returns: a line, however much it holds."""

import numpy as np

from smdebug.core.modes import ModeKeys
from smdebug.trials.observations.series import Series
from smdebug.trials.observations.statistics_matrix import ObservedTensor, StatisticsMatrix


def series(values: list[float]) -> Series:
    steps = np.arange(len(values))
    return Series("loss", steps, np.array(values, float), (ModeKeys.TRAIN,) * len(values), steps)


def test_a_series_shows_its_length_and_its_ends():
    shown = repr(series([2.5] + [1.0] * 1998 + [0.25]))
    assert shown == "Series('loss', 2,000 values from step 0 to 1999: 2.5 to 0.25)"


def test_a_series_without_values_says_so():
    assert repr(series([])) == "Series('loss', no values)"


def test_a_matrix_shows_how_many_tensors_of_each_kind_it_holds():
    tensors = tuple(ObservedTensor(f"layer{number}.weight", (2, 2), "float32") for number in range(300))
    kinds = ("parameters",) * 200 + ("gradients",) * 100
    matrix = StatisticsMatrix(10, tensors, kinds, np.zeros((300, 16), np.float32))
    assert repr(matrix) == "StatisticsMatrix(step=10, 200 parameters, 100 gradients; 16 statistics each)"
    assert repr(matrix.of("updates")) == "StatisticsMatrix(step=10, no tensors; 16 statistics each)"
