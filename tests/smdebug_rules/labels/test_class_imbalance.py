from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules import restore_state, save_state
from smdebug_rules.labels.class_imbalance import ClassImbalance
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def labels(*counts):
    return np.repeat(np.arange(len(counts)), counts)


def test_990_labels_of_one_class_and_10_of_another_are_found_although_all_were_predicted_right():
    both = labels(990, 10)
    run = made_run({0: {"labels": both, "predictions": both}}).trial()
    (found,) = findings_by_step(ClassImbalance(run))[0]
    assert (found.value, found.threshold) == (99.0, 10.0)
    assert str(found).startswith("class 0 has 990 of 1000 labels, class 1 only 10: ratio 99 (limit")


def test_labels_are_counted_over_steps_until_there_are_enough():
    run = made_run({step: {"labels": labels(95, 5)} for step in range(4)}).trial()
    found = findings_by_step(ClassImbalance(run, samples="300"))
    assert list(found) == [2, 3]


def test_a_class_that_is_mostly_predicted_wrong_is_found():
    true = labels(300, 300)
    wrong = true.copy()
    wrong[:220] = 1
    run = made_run({0: {"labels": true, "predictions": wrong}}).trial()
    (found,) = findings_by_step(ClassImbalance(run))[0]
    assert str(found) == "class 0: 220 of 300 samples mispredicted, 0.7333 (limit 0.7)"


def test_scores_are_predictions_by_their_largest():
    scores = np.zeros((600, 2), np.float32)
    scores[:, 1] = 1
    run = made_run({0: {"CrossEntropyLoss_input_1": labels(300, 300), "CrossEntropyLoss_input_0": scores}})
    rule = ClassImbalance(
        run.trial(),
        labels_regex="CrossEntropyLoss_input_1",
        predictions_regex="CrossEntropyLoss_input_0",
        argmax="True",
    )
    (found,) = findings_by_step(rule)[0]
    assert found.details == {"class": 0}


def test_every_worker_counts():
    run = MadeRun(workers=2)
    run.save(0, {"labels": labels(500)}, rank=0).save(0, {"labels": labels(0, 20)}, rank=1)
    assert fires_at(ClassImbalance(run.end().trial())) == [0]


def test_counting_can_begin_again():
    run = made_run({0: {"labels": labels(500, 10)}, 1: {"labels": labels(250, 250)}}).trial()
    assert fires_at(ClassImbalance(run, threshold_imbalance=2, reset_samples="500")) == [0]
    assert fires_at(ClassImbalance(run, threshold_imbalance=2)) == [0, 1]


def test_what_are_not_labels_is_skipped():
    run = made_run({0: {"labels": np.float32([0.5] * 600)}}).trial()
    rule = ClassImbalance(run)
    assert found_data_at(rule, 0) is False
    assert rule.skipped["labels"] == "the labels are not whole numbers"


@pytest.mark.parametrize(
    ("predictions", "reason"),
    [
        (np.linspace(-3, 3, 1000, dtype=np.float32), "the predictions are not whole numbers"),
        (np.zeros(999, np.int64), "there are 1000 labels and 999 predictions"),
    ],
)
def test_labels_count_also_where_their_predictions_are_not_classes(predictions, reason):
    rule = ClassImbalance(made_run({0: {"labels": labels(990, 10), "predictions": predictions}}).trial())
    (found,) = findings_by_step(rule)[0]
    assert found.value == 99
    assert rule.skipped == {"predictions": reason}


def test_fewer_samples_to_begin_again_than_to_judge_are_refused():
    with pytest.raises(SMDebugValueError):
        ClassImbalance(made_run({}).trial(), samples=500, reset_samples=100)


def test_labels_of_training_and_of_validation_are_counted_separately():
    run = MadeRun()
    run.save(0, {"labels": labels(600, 20)}, mode=ModeKeys.TRAIN)
    run.save(1, {"labels": labels(500, 500)}, mode=ModeKeys.EVAL)
    run.save(2, {"labels": labels(600, 20)}, mode=ModeKeys.TRAIN)
    found = findings_by_step(ClassImbalance(run.end().trial()))
    assert {step: finding.value for step, (finding,) in found.items()} == {0: 30, 2: 30}


def test_predictions_that_a_pattern_leaves_ambiguous_have_not_passed():
    tensors = {
        "labels": labels(500, 500),
        "a/predictions": labels(500, 500),
        "b/predictions": labels(500, 500),
    }
    rule = ClassImbalance(made_run({0: tensors}).trial())
    assert found_data_at(rule, 0) is False
    assert "predictions_regex selects 2 tensors (a/predictions, b/predictions)" in rule.not_checked
    imbalanced = tensors | {"labels": labels(990, 10)}
    assert fires_at(ClassImbalance(made_run({0: imbalanced}).trial())) == [0]
    rule = ClassImbalance(made_run({0: {"labels": labels(500, 500)}}).trial())
    assert (found_data_at(rule, 0), rule.not_checked) == (True, None)


def test_its_counts_continue_in_another_process():
    run = made_run({0: {"labels": labels(300, 5)}, 1: {"labels": labels(300, 5)}}).trial()
    first, second = ClassImbalance(run), ClassImbalance(run)
    assert found_data_at(first, 0) is True
    restore_state(second, save_state(first))
    assert fires_at(second, 1) == [1]
