from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.values.exploding_tensor import ExplodingTensor, proving_reduction
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

NAN, INF = float("nan"), float("inf")
STEPS = {
    0: {"gradient/w": [1.0, 2.0], "weight": [1.0]},
    1: {"gradient/w": [1.0, INF], "weight": [1.0]},
    2: {"gradient/w": [1.0, NAN], "weight": [-INF]},
    3: {"gradient/w": [1.0, 1e38], "weight": [1.0], "text": np.array(["nan"])},
}


@pytest.mark.parametrize(
    ("parameters", "steps"),
    [
        ({}, [1, 2]),
        ({"only_nan": True}, [2]),
        ({"only_nan": "True"}, [2]),
        ({"collection_names": "weights"}, [2]),
        ({"collection_names": "gradients,weights"}, [1, 2]),
        ({"collection_names": ["weights"], "only_nan": "true"}, []),
        ({"tensor_regex": "^grad"}, [1, 2]),
        ({"tensor_regex": ["nothing", "ight$"]}, [2]),
        ({"collection_names": "nothing"}, []),
    ],
)
def test_it_fires_on_what_is_selected_or_on_everything(parameters, steps):
    assert fires_at(ExplodingTensor(made_run(STEPS).trial(), **parameters)) == steps


def test_the_worst_tensor_comes_first_with_its_counts():
    found = findings_by_step(ExplodingTensor(made_run(STEPS).trial()))[2]
    assert [str(finding) for finding in found] == [
        "weight: 1 infinite of 1 values",
        "gradient/w: 1 NaN of 2 values, since step 1",
    ]


def test_what_was_written_by_every_worker_is_checked():
    run = MadeRun(workers=2)
    run.save(0, {"w": [1.0]}, rank=0).save(0, {"w": [NAN]}, rank=1).end()
    (finding,) = findings_by_step(ExplodingTensor(run.trial()))[0]
    assert (finding.tensor, finding.worker) == ("w", "worker_1")


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", ml_dtypes.bfloat16])
def test_it_is_right_on_every_type(dtype):
    value = np.ones(100_000, np.float32)
    bad = value.copy()
    bad[-1] = NAN
    run = made_run({0: {"w": value.astype(dtype)}, 1: {"w": bad.astype(dtype)}})
    assert fires_at(ExplodingTensor(run.trial(), only_nan="True")) == [1]


def reduced(**saved):
    return {f"smdebug/reductions/{name}/w": np.asarray(value) for name, value in saved.items()}


@pytest.mark.parametrize(
    ("saved", "any_", "only_nan"),
    [
        ({"mean": np.float32(NAN)}, True, False),  # infinity less infinity is NaN, too
        ({"min": np.float32(NAN)}, True, True),
        ({"max": np.float32(INF)}, True, False),
        ({"abs_mean": np.float32(NAN)}, True, True),
        ({"l2": np.float32(INF)}, True, False),
        ({"l2": np.float16(INF)}, False, False),  # float16 overflows
        ({"sum": np.float16(INF)}, False, False),
        ({"prod": np.float64(INF)}, False, False),
        ({"variance": np.float32(INF)}, False, False),
        ({"variance": np.float32(NAN)}, True, False),
        ({"std": np.float32(NAN)}, True, False),
        ({"abs_std": np.float32(NAN)}, True, False),
        ({"mean": np.float32(1.0)}, False, False),
    ],
)
def test_saved_reductions_are_enough_where_they_prove_it(saved, any_, only_nan):
    trial = made_run({0: reduced(**saved)}).trial()
    assert fires_at(ExplodingTensor(trial)) == ([0] if any_ else [])
    assert fires_at(ExplodingTensor(trial, only_nan=True)) == ([0] if only_nan else [])


def test_the_leaves_of_trees_have_nan_without_being_ill():
    steps = {0: {"trees/Split": [0.5, NAN], "w": [1.0]}, 1: {"w": [NAN]}}
    run = made_run(steps, collections={"trees": ["^trees/"]}).trial()
    assert fires_at(ExplodingTensor(run)) == [1]
    assert fires_at(ExplodingTensor(run, tensor_regex="trees|w")) == [0, 1]


def test_a_value_counts_more_than_a_reduction():
    trial = made_run({0: {"w": [1.0], **reduced(mean=NAN)}}).trial()
    assert fires_at(ExplodingTensor(trial)) == []


def test_without_reductions_nothing_is_detected():
    assert proving_reduction({}, False) is None


def test_text_alone_is_nothing_to_look_at():
    rule = ExplodingTensor(made_run({0: {"text": np.array(["nan"])}}).trial())
    assert found_data_at(rule, 0) is False


def test_an_invalid_parameter_is_refused():
    trial = made_run(STEPS).trial()
    with pytest.raises(SMDebugValueError, match="only_nan must be True or False, not 'nan'"):
        ExplodingTensor(trial, only_nan="nan")
    with pytest.raises(SMDebugValueError, match="is not a valid regex"):
        ExplodingTensor(trial, tensor_regex="*")
