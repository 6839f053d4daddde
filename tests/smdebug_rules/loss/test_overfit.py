from __future__ import annotations

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug_rules.loss.overfit import Overfit, excess
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def run_of(*steps):
    run = MadeRun()
    for step, (mode, loss) in enumerate(steps):
        run.save(step, {"loss": np.float32(loss)}, mode=mode)
    return run.end().trial()


def test_the_excess_is_reported_in_parts_of_the_training_loss():
    assert excess(1.5, 1.0) == 0.5
    assert excess(-0.5, -1.0) == 0.5
    assert excess(1.0, 0.0) is None
    assert excess(float("nan"), 1.0) is None


def test_a_block_of_evaluations_is_compared_with_the_training_before_it_when_it_ends():
    trial = run_of((TRAIN, 1), (TRAIN, 3), (EVAL, 2), (EVAL, 4), (TRAIN, 1), (EVAL, 1), (TRAIN, 1))
    found = findings_by_step(Overfit(trial))
    assert list(found) == [4]
    assert found[4][0].details == {"validation_loss": 3.0, "training_loss": 2.0, "found_since": 4}
    assert str(found[4][0]) == ("validation loss 3 is 50.0% above training loss 2 (limit 0.1)")


def test_the_last_block_counts_as_soon_as_it_is_as_long_as_the_one_before():
    trial = run_of((TRAIN, 1), (EVAL, 1), (EVAL, 1), (TRAIN, 1), (EVAL, 5), (EVAL, 5))
    assert fires_at(Overfit(trial)) == [5]


def test_a_single_block_at_the_very_end_counts_with_the_run():
    trial = run_of((TRAIN, 1), (TRAIN, 1), (EVAL, 5), (EVAL, 7))
    found = findings_by_step(Overfit(trial))
    assert {step: [finding.value for finding in findings] for step, findings in found.items()} == {3: [5.0]}
    shorter = run_of((TRAIN, 1), (EVAL, 1), (EVAL, 1), (TRAIN, 1), (EVAL, 5))
    assert fires_at(Overfit(shorter)) == [4]


def test_a_last_block_that_was_judged_is_not_judged_again():
    trial = run_of((TRAIN, 1), (EVAL, 5), (TRAIN, 1), (EVAL, 5))
    assert fires_at(Overfit(trial, patience=3)) == []
    trial = run_of((TRAIN, 1), (EVAL, 5), (TRAIN, 1), (EVAL, 5), (EVAL, 5))
    assert len(findings_by_step(Overfit(trial))[3]) == 1
    assert 4 not in findings_by_step(Overfit(trial))


def test_a_run_that_continues_after_its_end_is_judged_as_if_it_had_not_ended():
    run = MadeRun()
    for step, mode, loss in ((0, TRAIN, 1), (1, EVAL, 5)):
        run.save(step, {"loss": np.float32(loss)}, mode=mode)
    rule = Overfit(run.trial(), patience=2)
    rule.invoke(0)
    rule.invoke(1)
    rule.invoke_end(1)
    for step, mode, loss in ((2, EVAL, 5), (3, TRAIN, 1)):
        run.save(step, {"loss": np.float32(loss)}, mode=mode)
    rule.invoke(2)
    rule.invoke(3)
    assert rule.in_a_row == 1


def test_it_takes_patience_blocks_in_a_row():
    losses = [5, 5, 1, 5, 5, 5]
    steps = [item for loss in losses for item in ((TRAIN, 1), (EVAL, loss))]
    assert fires_at(Overfit(run_of(*steps, (TRAIN, 1)), patience="2")) == [3, 9, 11]


def test_earlier_steps_do_not_count():
    trial = run_of((TRAIN, 1), (EVAL, 9), (TRAIN, 1), (EVAL, 9), (TRAIN, 1))
    assert fires_at(Overfit(trial, start_step=3)) == []
    assert fires_at(Overfit(trial, start_step="2")) == [4]


def test_losses_that_are_not_finite_are_compared_with_nothing():
    trial = run_of((TRAIN, 1), (EVAL, np.nan), (TRAIN, np.inf), (EVAL, 9), (TRAIN, 0), (EVAL, 9), (TRAIN, 1))
    assert fires_at(Overfit(trial)) == []


def test_metrics_of_xgboost_are_compared_step_by_step():
    steps = {
        0: {"train-rmse": np.float32(1), "validation-rmse": np.float32(1)},
        1: {
            "train-rmse": np.float32(1),
            "validation-rmse": np.float32(2),
            "train-auc": np.float32(9),
        },
        2: {"train-auc": np.float32(0.5), "validation-auc": np.float32(0.9)},
    }
    run = made_run(steps, collections={"metrics": ["^train-", "^validation-"]}).trial()
    found = findings_by_step(Overfit(run))
    assert list(found) == [1]
    assert found[1][0].details["last_good_step"] == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_the_loss_is_the_mean_of_all_workers(workers):
    run = MadeRun(workers=workers)
    for step, (mode, loss) in enumerate([(TRAIN, 1.0), (EVAL, 2.0), (TRAIN, 1.0)]):
        for rank in range(workers):
            run.save(step, {"loss": np.float32(loss + rank)}, mode=mode, mode_step=step, rank=rank)
    (found,) = findings_by_step(Overfit(run.end().trial()))[2]
    assert found.value == pytest.approx(1 / np.mean([1 + rank for rank in range(workers)]))


def test_a_loss_of_neither_mode_is_reported_as_skipped():
    rule = Overfit(made_run({0: {"loss": np.float32(1)}}).trial())
    rule.invoke(0)
    assert rule.looked is False
    assert rule.skipped == {"loss": "its step has neither mode TRAIN nor EVAL"}


def test_without_validation_nothing_was_checked():
    run = MadeRun()
    for step in range(4):
        run.save(step, {"loss": [1.0]}, mode=ModeKeys.TRAIN)
    rule = Overfit(run.end().trial())
    assert found_data_at(rule, 3) is False
    assert "no validation loss was saved" in rule.not_checked
