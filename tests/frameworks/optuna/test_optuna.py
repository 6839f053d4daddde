"""A study of Optuna whose trials are runs: those with a problem are pruned, and say why."""

from __future__ import annotations

import math

import optuna
import pytest

import smdebug
from smdebug.runs.conditions import parse_condition
from smdebug.runs.listing import list_runs
from smdebug.saving.hooks import singleton
from smdebug.sweeps import watch_trial
from smdebug.trials import create_trial

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(autouse=True)
def no_hook_of_this_process():
    singleton.del_hook()
    yield
    singleton.del_hook()


def descend(watched, rate):
    """Descend a parabola: it diverges if the rate is above 1."""
    weight = loss = 1.0
    with smdebug.Hook(watched.out_dir, config=watched.config) as hook:
        for _ in range(12):
            with hook.step(smdebug.modes.TRAIN):
                loss = weight**2
                hook.record("loss", loss if loss < 1e6 else math.nan)
                weight -= rate * 2 * weight
            watched.prune()
    return loss


def test_trials_with_a_problem_are_pruned_and_the_others_are_not(tmp_path):
    def objective(trial):
        with watch_trial(str(tmp_path), trial) as watched:
            rate = trial.suggest_categorical("rate", [0.1, 50.0])  # after the run was named
            return descend(watched, rate)

    study = optuna.create_study(
        study_name="rates", sampler=optuna.samplers.GridSampler({"rate": [0.1, 50.0]}, seed=0)
    )
    study.optimize(objective, n_trials=2)
    states = {trial.params["rate"]: trial for trial in study.trials}
    assert states[0.1].state is optuna.trial.TrialState.COMPLETE
    assert states[50.0].state is optuna.trial.TrialState.PRUNED
    assert states[0.1].user_attrs["smdebug_problems"] == []
    assert states[50.0].user_attrs["smdebug_problems"]
    for rate, trial in states.items():
        run = create_trial(trial.user_attrs["smdebug_run"])
        assert run.origin.config == {"group": "rates", "rate": rate}
    found = list_runs(str(tmp_path), where=[parse_condition("group=rates"), parse_condition("rate>1")])
    assert [run.name for run in found] == [f"rates/trial-{states[50.0].number}"]
    assert study.best_trial.params == {"rate": 0.1}


def test_an_error_of_the_objective_is_the_objectives(tmp_path):
    def objective(trial):
        with watch_trial(str(tmp_path), trial):
            raise ZeroDivisionError

    study = optuna.create_study()
    study.optimize(objective, n_trials=1, catch=(ZeroDivisionError,))
    assert study.trials[0].state is optuna.trial.TrialState.FAIL


def test_reports_to_the_pruner_of_the_study_work_beside_it(tmp_path):
    def objective(trial):
        with watch_trial(str(tmp_path), trial) as watched, smdebug.Hook(watched.out_dir) as hook:
            for step in range(3):
                with hook.step(smdebug.modes.TRAIN):
                    hook.record("loss", 1.0 / (1 + step))
                trial.report(1.0 / (1 + step), step)
                watched.prune()
            return 1.0

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner())
    study.optimize(objective, n_trials=1)
    assert study.trials[0].intermediate_values == {0: 1.0, 1: 0.5, 2: 1 / 3}
