"""What workers have measured of parts of tensors, combined to statistics of the whole."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from smdebug.files.observations import ObservedTensor
from smdebug.numbers.rows import COLUMN, COLUMNS, MEASURED, combined, measured
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
from smdebug.trials.observations.wholes import own_parts, with_wholes
from smdebug.trials.observations.worker_parts import Share, shares_of

WHOLE = np.random.default_rng(0).integers(-4, 5, (7, 3)).astype(np.float64)


@dataclass
class Worker:
    """A worker that has measured some values of tensors, each with the part that they are."""

    values: dict
    shares: dict = field(default_factory=dict)

    def measured_parts(self, kind):
        if not self.shares:
            return None
        rows = [measured(np.asarray(each)) if name in self.shares else [math.nan] * 9 for name, each in self]
        return tuple(ObservedTensor(name) for name in self.values), np.array(rows, np.float64)

    def matrix(self):
        values = np.full((len(self.values), len(COLUMNS)), np.nan, np.float32)
        values[:, : len(MEASURED)] = [measured(np.asarray(each)) for each in self.values.values()]
        tensors = [ObservedTensor(name, np.shape(each), "float64") for name, each in self]
        return StatisticsMatrix(0, tuple(tensors), ("parameters",) * len(values), values)

    def __iter__(self):
        return iter(self.values.items())


def holder(values, at, of=3, mesh=0, name="w"):
    share = Share(mesh, (("dp", at),), of, f"{at + 1} of {of} along dp", WHOLE.shape)
    return Worker({name: values}, {name: share} if np.size(values) else {})


def seen_by(workers):
    own = workers[0]
    others = {f"worker_{number}": worker for number, worker in enumerate(workers[1:], 1)}
    return with_wholes(own.matrix(), "parameters", own, others)


def assert_is_whole(matrix, name="w"):
    row = matrix.row(name)
    assert [row[statistic] for statistic in ("count", "zeros", "min", "max")] == [
        WHOLE.size,
        np.count_nonzero(WHOLE == 0),
        WHOLE.min(),
        WHOLE.max(),
    ]
    expected = dict(zip(MEASURED, measured(WHOLE), strict=True))
    for statistic in ("mean", "abs_mean", "rms", "std"):
        assert row[statistic] == pytest.approx(expected[statistic], rel=1e-15, abs=1e-16)
    assert math.isnan(row["p50"])  # quantiles of parts give none of the whole
    assert matrix.described(name)[2] == WHOLE.shape
    assert matrix.parts == {}


PARTS = (WHOLE[:4], WHOLE[4:], WHOLE[7:])
"""Uneven, and the last one empty."""


def test_parts_of_uneven_sizes_make_the_whole():
    assert_is_whole(seen_by([holder(part, at) for at, part in enumerate(PARTS)]))


def test_copies_count_once():
    copies = [holder(part, at) for at, part in enumerate(PARTS) for _ in range(2)]
    assert_is_whole(seen_by(copies))


def test_the_first_worker_may_hold_none_of_it():
    assert_is_whole(seen_by([holder(PARTS[2], 2), holder(PARTS[0], 0), holder(PARTS[1], 1)]))


def test_copies_of_the_model_on_another_mesh_are_left_out():
    twins = [holder(part + 1, at, mesh=3) for at, part in enumerate(PARTS)]
    assert_is_whole(seen_by([*(holder(part, at) for at, part in enumerate(PARTS)), *twins]))


def test_no_number_poses_as_the_whole_while_a_part_is_missing():
    parts = [holder(WHOLE[at : at + 1], at, 7) for at in range(7) if at != 5]
    matrix = seen_by(parts)
    assert matrix.parts == {"w": "1 of 7 along dp; 6 of 7 parts are known"}
    assert matrix.row("w")["count"] == 3
    assert seen_by(parts[:1]).parts == own_parts(parts[0].matrix(), parts[0].shares).parts


def test_sums_that_the_ranks_have_yet_to_add_up_are_no_whole():
    """Such as the gradient of a copied parameter, of which each rank has computed its own rows' share."""
    matrix = seen_by([holder(WHOLE[:4], 0, 2), holder(WHOLE[4:], 1, 2), holder(WHOLE[4:] + 1, 1, 2)])
    assert matrix.parts == {"w": "1 of 2 along dp; its copies differ"}


def test_samples_are_no_whole():
    matrix = seen_by([holder(WHOLE[:1], 0, 2), holder(WHOLE[4:5], 1, 2)])
    assert matrix.parts == {"w": "1 of 2 along dp; measured of a sample"}


def test_a_tensor_of_the_same_name_on_another_stage_changes_nothing():
    whole = Worker({"w": WHOLE[:2]})
    matrix = seen_by([whole, *(holder(part, at) for at, part in enumerate(PARTS))])
    assert matrix.row("w")["count"] == 6
    assert matrix.parts == {} == matrix.combined


def test_gradients_and_updates_are_sharded_as_their_parameter_is():
    workers = []
    for at, part in enumerate(PARTS[:2]):
        worker = holder(part, at)
        worker.values = {"gradient/w": part, "update/w": 2 * part}
        worker.measured_parts = lambda kind, part=part: (
            (ObservedTensor("gradient/w"), ObservedTensor("update/w")),
            np.array([measured(part), measured(2 * part)]),
        )
        workers.append(worker)
    matrix = seen_by(workers)
    assert_is_whole(matrix, "gradient/w")
    assert matrix.row("update/w")["max"] == 2 * WHOLE.max()


def test_values_that_are_not_finite_are_counted_and_the_others_measured():
    odd = np.array([[np.nan, 2.0, np.inf]])
    found = combined(np.array([[measured(odd)], [measured(WHOLE[:6])], [measured(np.full((1, 3), np.nan))]]))
    finite = np.append(WHOLE[:6].reshape(-1), 2.0)
    assert found[0, :2].tolist() == [24, 5]
    assert found[0, COLUMN["rms"]] == pytest.approx(np.sqrt((finite**2).mean()), rel=1e-15)
    assert np.isnan(combined(np.array([[measured(odd[:, :1])]]))[0, 3:]).all()


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_neither_large_nor_small_values_are_lost_in_their_squares(scale):
    found = combined(np.array([[measured(scale * WHOLE[:4])], [measured(scale * WHOLE[4:])]]))
    assert found[0, COLUMN["std"]] == pytest.approx(scale * WHOLE.std(), rel=1e-12)


FACT = {
    "mesh": ["dp", "tp"],
    "sizes": [2, 4],
    "first_rank": 0,
    "at": [1, 2],
    "splits": [None, 0],
    "own_rows": [True, False],
    "tensors": ["w"],
    "shapes": [[8, 3]],
}


def test_facts_say_which_part_a_worker_holds():
    assert shares_of({"parts": [FACT]}) == {"w": Share(0, (("tp", 2),), 4, "3 of 4 along tp", (8, 3))}


@pytest.mark.parametrize(
    "wrong",
    [
        {"shapes": None},
        {"shapes": [["8"]]},
        {"sizes": [2]},
        {"sizes": [2, "4"]},
        {"splits": [None, None]},
        {"at": ["1", 2]},
        {"tensors": [3]},
    ],
)
def test_facts_of_another_form_say_nothing(wrong):
    assert shares_of({"parts": [{**FACT, **wrong}]}) == {}
