from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.labels.confusion import Confusion
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

RIGHT = np.arange(10)
WRONG = np.where(RIGHT == 4, 7, RIGHT)


def run_of(predictions, labels=RIGHT, **names):
    return made_run({0: {"labels": labels, "predictions": predictions, **names}}).trial()


def test_a_classifier_that_is_always_right_is_not_found():
    assert fires_at(Confusion(run_of(RIGHT))) == []
    assert fires_at(Confusion(run_of(RIGHT), 10, "labels", "predictions")) == []


def test_one_class_taken_for_another_is_found():
    found = findings_by_step(Confusion(run_of(WRONG), 10, "labels", "predictions"))[0]
    assert {str(finding) for finding in found} == {
        "only 0.5 of the predictions of class 7 are right (limit 0.9)",
        "0.5 of the predictions of class 7 are class 4 (limit 0.1)",
    }


def test_the_two_limits_are_checked_each_by_itself():
    assert fires_at(Confusion(run_of(WRONG), min_diag=0.0, max_off_diag=0.01)) == [0]
    assert fires_at(Confusion(run_of(WRONG), min_diag=0.9, max_off_diag=1.0)) == [0]
    assert fires_at(Confusion(run_of(WRONG), min_diag=0.5, max_off_diag=0.5)) == []


def test_scores_and_tensors_of_other_names_are_understood():
    scores = np.eye(10, dtype=np.float32)[WRONG]
    run = made_run(
        {0: {"y": RIGHT, "y_hat": scores, "y2": RIGHT}},
        collections={"labels": ["^y$"], "predictions": ["y_hat"]},
    ).trial()
    assert fires_at(Confusion(run)) == [0]
    assert fires_at(Confusion(run, labels="y2", predictions="y2")) == []


def test_classes_beyond_the_number_of_them_are_skipped():
    run = run_of(np.array([0, 1, 50]), np.array([0, 1, 1]))
    assert fires_at(Confusion(run)) == [0]
    rule = Confusion(run, category_no="2")
    assert fires_at(rule) == []
    assert rule.skipped["labels"].startswith("1 samples")


def test_all_workers_make_one_matrix():
    run = MadeRun(workers=2)
    for rank, predictions in enumerate((RIGHT, WRONG)):
        run.save(0, {"labels": RIGHT, "predictions": predictions}, rank=rank)
    values = [round(item.value, 3) for item in findings_by_step(Confusion(run.end().trial()))[0]]
    assert sorted(values) == [0.333, 0.667]


def test_labels_without_as_many_predictions_are_not_judged():
    assert found_data_at(Confusion(run_of(RIGHT[:5])), 0) is False
    assert found_data_at(Confusion(made_run({0: {"labels": RIGHT}}).trial()), 0) is False


@pytest.mark.parametrize("parameters", [{"category_no": 1}, {"min_diag": 1.1}, {"labels": ""}])
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        Confusion(made_run({}).trial(), **parameters)
