"""Losses of the training that were saved with an evaluation are judged like all others."""

import math

import pytest

import smdebug
from smdebug import modes
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.trials import create_trial


def train(place, loss_of, steps, every):
    """Train, and evaluate three batches after every so many steps."""
    with smdebug.Hook(str(place)) as hook:
        for step in range(steps):
            with hook.step(modes.TRAIN):
                hook.record_all({"loss": loss_of(step), "weight": [1.0, 2.0], "learning_rate": 0.1})
            if step % every == every - 1:
                for _ in range(3):
                    with hook.step(modes.EVAL):
                        hook.record("loss", 0.5)
    return create_trial(str(place))


def global_step(step, every):
    """The step of the run: those of evaluations count, too."""
    return step + 3 * (step // every)


def first_of(trial, rule):
    (result,) = evaluate(trial, [rule])
    return result.found[0].findings[0] if result.found else None


@pytest.mark.parametrize("every", [5, 10, 20])
@pytest.mark.parametrize("steps", [42, 45, 50, 60])
def test_a_loss_that_is_nan_is_found_since_its_first_step(tmp_path, every, steps):
    trial = train(tmp_path / "run", lambda step: 1 / (1 + step) if step < 41 else math.nan, steps, every)
    found = first_of(trial, "NonFiniteValues")
    assert found is not None
    assert found["since"] == global_step(41, every)


@pytest.mark.parametrize("at", [41, 44, 45, 47, 49])
def test_a_spike_is_found_wherever_it_was_saved(tmp_path, at):
    trial = train(tmp_path / "run", lambda step: 100.0 if step == at else 1.0, 60, 5)
    found = first_of(trial, "LossSpike")
    assert found is not None
    assert found["since"] == global_step(at, 5)


def test_a_rule_that_finds_nothing_there_has_not_passed_there(tmp_path):
    trial = train(tmp_path / "run", lambda step: 1 / (1 + step), 50, 5)
    results = evaluate(trial, ["NonFiniteValues", "LossSpike", "LearningRate"])
    of_training = [step for step in trial.steps() if trial.mode(step) is modes.TRAIN]
    assert len(trial.steps()) > len(of_training)
    for result in results:
        assert not result.has_found
        assert not result.error
    looked = {result.name: result.looked - result.without_data for result in results}
    assert looked["NonFiniteValues"] == len(of_training)


def test_every_loss_of_the_training_is_counted_once(tmp_path):
    from smdebug_default_rules.loss.loss_spike import LossSpike

    trial = train(tmp_path / "run", lambda step: 1 / (1 + step), 50, 5)
    rule = LossSpike(trial)
    for step in trial.steps():
        rule.invoke_at_step(step)
    assert rule.losses["count"] == 50


def test_what_was_found_in_tensors_keeps_its_onset_over_an_evaluation(tmp_path):
    from smdebug_default_rules.values.non_finite_values import NonFiniteValues

    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for step in range(60):
            weight = [math.nan, 1.0] if step >= 4 else [0.5, 1.0]
            with hook.step(modes.TRAIN):
                hook.record_all({"loss": 1.0, "weight": weight, "gradient/weight": weight})
            if step % 5 == 4:
                with hook.step(modes.EVAL):
                    hook.record("loss", 0.5)
    trial = create_trial(str(tmp_path / "run"))
    rule, onsets = NonFiniteValues(trial), set()
    for step in trial.steps():
        if rule.invoke_at_step(step):
            onsets |= {finding.since for finding in rule.findings if finding.tensor != "loss"}
    assert len(onsets) == 1, onsets
