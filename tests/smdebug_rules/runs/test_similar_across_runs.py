from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.runs.similar_across_runs import SimilarAcrossRuns
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

NAN = float("nan")


@pytest.fixture
def trial():
    return made_run(
        {
            0: {"w": [1.0, 2.0], "loss": [5.0], "only_here": [1.0]},
            1: {"w": [1.0, 2.0], "loss": [4.0]},
            2: {"w": [1.0, NAN], "loss": [3.0]},
            3: {"w": [9.0]},
        }
    ).trial()


@pytest.fixture
def other():
    return made_run(
        {
            0: {"w": [1.0, 2.0], "loss": [5.0]},
            1: {"w": [1.0, 2.5], "loss": [3.0]},
            2: {"w": [1.0, NAN], "loss": [3.0]},
        }
    ).trial("other")


def test_it_fires_where_the_runs_differ(trial, other):
    found = findings_by_step(SimilarAcrossRuns(trial, other))
    assert list(found) == [1]
    assert [str(finding) for finding in found[1]] == [
        "loss: differs from run other by up to 1",
        "w: differs from run other by up to 0.5",
    ]
    details = {name: found[1][0].details[name] for name in ("other_trial", "rtol", "atol")}
    assert details == {"other_trial": "other", "rtol": 1e-5, "atol": 1e-8}


@pytest.mark.parametrize("name", ["include", "include_regex", "tensor_regex"])
def test_the_pattern_has_three_names(trial, other, name):
    found = findings_by_step(SimilarAcrossRuns(trial, other, **{name: "^w$"}))
    assert [finding.tensor for finding in found[1]] == ["w"]


def test_collections_can_be_selected(trial, other):
    rule = SimilarAcrossRuns(trial, other, collection_names="losses")
    assert [item.tensor for item in findings_by_step(rule)[1]] == ["loss"]


@pytest.mark.parametrize("given", ["positional", "other_trial", "other_trials", "a list in other_trial"])
def test_the_other_run_may_be_given_in_any_documented_way(trial, other, given):
    rule = {
        "positional": lambda: SimilarAcrossRuns(trial, other, None),
        "other_trial": lambda: SimilarAcrossRuns(base_trial=trial, other_trial=other),
        "other_trials": lambda: SimilarAcrossRuns(trial, other_trials=[other]),
        "a list in other_trial": lambda: SimilarAcrossRuns(trial, [other]),
    }[given]()
    assert fires_at(rule) == [1]


def test_a_run_is_similar_to_itself(trial):
    assert fires_at(SimilarAcrossRuns(trial, trial)) == []


def test_tolerances_and_nan_are_parameters(trial, other):
    assert fires_at(SimilarAcrossRuns(trial, other, atol="1")) == []
    assert fires_at(SimilarAcrossRuns(trial, other, equal_nan="False")) == [1, 2]


def test_what_the_other_run_lacks_is_skipped_unless_strict(trial, other):
    found = findings_by_step(SimilarAcrossRuns(trial, other, strict="True"))
    assert [str(finding) for finding in found[0]] == ["only_here: run other lacks it at step 0"]


def test_a_step_that_the_other_run_lacks_was_not_checked(trial, other):
    assert found_data_at(SimilarAcrossRuns(trial, other), 3) is False


def test_another_shape_is_a_difference(trial):
    other = made_run({0: {"w": [[1.0, 2.0]]}}).trial("other")
    (finding,) = findings_by_step(SimilarAcrossRuns(trial, other))[0]
    assert str(finding) == "w: shape (2,) is (1, 2) in run other"


def test_where_only_reductions_were_saved_those_are_compared():
    saved = "smdebug/reductions/mean/w"
    trial = made_run({0: {saved: np.float32(1)}, 1: {saved: np.float32(1)}}).trial()
    other = made_run({0: {saved: np.float32(1)}, 1: {saved: np.float32(2)}}).trial("other")
    found = findings_by_step(SimilarAcrossRuns(trial, other))
    assert {step: [str(finding) for finding in found[step]] for step in found} == {
        1: ["w: saved mean differs from run other by up to 1"]
    }


def test_workers_are_compared_with_their_namesakes():
    runs = [MadeRun(workers=2), MadeRun(workers=2)]
    for scale, run in enumerate(runs, 1):
        run.save(0, {"w": [1.0]}, rank=0).save(0, {"w": [float(scale)]}, rank=1).end()
    (finding,) = findings_by_step(SimilarAcrossRuns(*(run.trial() for run in runs)))[0]
    assert finding.worker == "worker_1"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"other_trial": "s3://bucket/run"},
        {"other_trial": "TRIAL", "include": "a", "tensor_regex": "b"},
        {"other_trial": "TRIAL", "rtol": -1},
        {"other_trial": "TRIAL", "strict": "very"},
    ],
)
def test_invalid_parameters_are_refused(trial, other, parameters):
    parameters = {name: other if value == "TRIAL" else value for name, value in parameters.items()}
    with pytest.raises(SMDebugValueError):
        SimilarAcrossRuns(trial, **parameters)
