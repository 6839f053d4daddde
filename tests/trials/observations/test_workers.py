"""What was observed by one worker is not shown for another."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.files.observations import (
    FACTS,
    LAYOUT,
    SERIES,
    STATISTICS,
    ObservationLayout,
    ObservedTensor,
    json_array,
)
from smdebug.numbers.rows import COLUMNS
from smdebug.storage.memory import MemoryStorage
from tests.support.looking import each
from tests.trials.writing import begin, open_trial, write_step


@pytest.fixture
def observations():
    """Those of a run of three workers, each with its own value of everything."""
    storage = begin(MemoryStorage(), 3)
    for step in range(2):
        for rank in range(3):
            value = 10.0 * rank + step
            layout = ObservationLayout(
                {"weights": (ObservedTensor(f"w{rank}", (rank + 1,), "float32"),)}, {"rank": rank}
            )
            observed = {
                FACTS: json_array({"layout": 0, "value": value}),
                f"{SERIES}loss": np.array([[step, 0, step, value]]),
                f"{STATISTICS}weights": np.full((1, len(COLUMNS)), value, np.float32),
            }
            write_step(
                storage, step, {LAYOUT: layout.to_array(), **observed} if not step else observed, worker=rank
            )
    return open_trial(storage).observations


ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2, 1, 0)]


@pytest.mark.parametrize("order", ORDERS)
def test_a_series_is_that_of_the_worker(observations, order):
    for rank in each(order, at_least=3):
        found = observations.series("loss", f"worker_{rank}")
        assert found.values.tolist() == [10.0 * rank, 10.0 * rank + 1]
    assert observations.series("loss").values.tolist() == [0.0, 1.0]  # the first worker's


@pytest.mark.parametrize("order", ORDERS)
def test_a_layout_and_its_statistics_are_those_of_the_worker(observations, order):
    for rank in each(order, at_least=3):
        worker = f"worker_{rank}"
        assert observations.layout(1, worker=worker).names("weights") == [f"w{rank}"]
        found = observations.statistics(1, worker=worker)
        assert [tensor.size for tensor in found.tensors] == [rank + 1]
        assert found.values[0, 0] == 10 * rank + 1


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_is_that_of_the_worker(observations, order):
    for rank in each(order, at_least=3):
        seen = observations.at(1, f"worker_{rank}")
        assert (seen.facts["rank"], seen.facts["value"]) == (rank, 10 * rank + 1)
        assert seen.series("loss")[0, 3] == 10 * rank + 1
        assert seen.layout.names("weights") == [f"w{rank}"]
