"""Tensors that were measured and not saved: their reductions and samples."""

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.exceptions import StepUnavailable, TensorUnavailable, TensorUnavailableForStep
from smdebug.numbers.reductions import compute_reduction
from smdebug.numbers.rows import COLUMNS, SAMPLE_SIZE, matrix_of, sample_of
from smdebug.numbers.statistics import statistics
from smdebug.trials import create_trial
from smdebug.trials.observations.measured_reductions import reduction_of, statistics_in

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "normal": RANDOM.normal(0.3, 2, (30, 20)).astype(np.float32),
    "few": RANDOM.normal(size=7).astype(np.float32),
    "positive": RANDOM.random(200, np.float32) + 1,
    "negative": -1 - RANDOM.random(200, np.float32),
    "with zeros": np.array([0, -3, 2], np.float32),
}
REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "l1", "l2"]


def row_of(array):
    matrix, _ = matrix_of([array], SAMPLE_SIZE)
    return dict(zip(COLUMNS, matrix[0].tolist(), strict=True))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("absolute", [False, True])
def test_rows_give_the_reductions_of_the_values(name, absolute):
    array, row = ARRAYS[name], row_of(ARRAYS[name])
    for reduction in REDUCTIONS:
        found = reduction_of(row, reduction, abs=absolute)
        if found is None:  # the smallest magnitude between positive and negative values
            assert (reduction, absolute) == ("min", True)
            assert array.min() < 0 < array.max()
            continue
        expected = compute_reduction(reduction, array, abs=absolute)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5), reduction


def test_a_median_is_known_of_tensors_that_are_sampled_whole():
    assert reduction_of(row_of(ARRAYS["few"]), "median") == pytest.approx(np.median(ARRAYS["few"]))
    assert reduction_of(row_of(ARRAYS["normal"]), "median") is None
    assert reduction_of(row_of(ARRAYS["few"]), "prod") is None


def test_values_that_are_not_finite_make_reductions_nan():
    row = row_of(np.array([1, np.inf], np.float32))
    assert np.isnan(reduction_of(row, "max"))
    assert reduction_of(row_of(np.array([], np.float32)), "max") is None


@pytest.fixture
def trial(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook:
        hook.observes = True
        for step in range(12):
            with hook.step(modes.TRAIN):
                hook.record("weight", ARRAYS["normal"] + step)
                if step == 0:
                    hook.record("once", ARRAYS["few"])
                hook.record("loss", 2.5)
    return create_trial(str(tmp_path / "run"))


def test_a_measured_tensor_has_steps_reductions_and_samples(trial):
    weight = trial.tensor("weight")
    assert weight.steps(modes.TRAIN) == list(range(11))
    expected = ARRAYS["normal"] + np.float32(3)
    for reduction, absolute in [("mean", True), ("max", False), ("l2", False)]:
        found = weight.reduction_value(3, reduction, modes.TRAIN, abs=absolute)
        assert found == pytest.approx(compute_reduction(reduction, expected, absolute), rel=1e-4)
    np.testing.assert_array_equal(weight.sample(3, modes.TRAIN), sample_of(expected, SAMPLE_SIZE))
    assert trial.tensor("once").steps() == [0]


def test_a_saved_tensor_has_a_sample_of_its_value(trial):
    assert trial.tensor("loss").sample(0).tolist() == [2.5]


def test_what_was_not_measured_raises_an_error(trial):
    with pytest.raises(TensorUnavailable):
        trial.tensor("unknown")
    weight = trial.tensor("weight")
    with pytest.raises(TensorUnavailableForStep):
        weight.value(3)
    with pytest.raises(TensorUnavailableForStep):
        weight.reduction_value(3, "prod")
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("once").reduction_value(2, "mean")
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("once").sample(2)
    with pytest.raises(StepUnavailable):
        weight.reduction_value(9999, "mean")


def test_a_measured_tensor_has_statistics_a_shape_and_workers(trial):
    weight = trial.tensor("weight")
    expected, found = statistics(ARRAYS["normal"] + 3), weight.statistics(3, modes.TRAIN)
    for name in ("size", "nan", "infinite", "zeros"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("min", "max", "mean", "abs_mean", "variance", "l1", "l2"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-4)
    assert weight.shape(3) == (30, 20)
    assert weight.workers(3) == ["worker_0"]
    assert weight.first_seen() == 0
    assert weight.prev_steps(5, 2) == [4, 5]
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("once").statistics(2)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("once").workers(2)


def test_statistics_of_values_that_are_not_finite_count_them():
    found = statistics_in(row_of(np.array([1, np.inf, np.nan], np.float32)))
    assert (found.size, found.non_finite) == (3, 2)
    assert np.isnan(found.mean)
