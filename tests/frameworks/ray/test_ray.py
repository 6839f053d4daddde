"""A sweep of Ray Tune whose trials are runs: one with a problem ends early."""

from __future__ import annotations

import math

from ray import tune

import smdebug
from smdebug.sweeps import watch_trial
from smdebug.trials import create_trial


def test_a_trial_with_a_problem_ends_early(tmp_path):
    folder = str(tmp_path / "runs")

    def train(config):
        name = tune.get_context().get_trial_name()
        with watch_trial(folder, name=name, group="rates", params=config) as watched:
            weight = 1.0
            with smdebug.Hook(watched.out_dir, config=watched.config) as hook:
                for _ in range(12):
                    with hook.step():
                        hook.record("loss", weight**2 if weight < 1e3 else math.nan)
                    weight -= config["rate"] * 2 * weight
                    tune.report({"loss": weight**2, **watched.metrics()})

    settings = tune.RunConfig(stop={"smdebug_problems": 1}, storage_path=str(tmp_path / "results"), verbose=0)
    space = {"rate": tune.grid_search([0.1, 50.0])}
    results = tune.Tuner(train, param_space=space, run_config=settings).fit()
    ended = {result.config["rate"]: result.metrics for result in results}
    assert ended[0.1]["training_iteration"] == 12
    assert ended[50.0]["training_iteration"] < 12
    assert ended[50.0]["smdebug_problems"] == 1
    configs = [create_trial(str(run)).origin.config for run in (tmp_path / "runs" / "rates").iterdir()]
    assert sorted(config["rate"] for config in configs) == [0.1, 50.0]
