"""Custom rules that compare runs, and the access that they get."""

from __future__ import annotations

import numpy as np
import pytest

from functions.custom_rules.claiming import claim
from tests.functions.custom_rules.watched import RUN, Watched
from tests.functions.saver import Saver

COMPARES = """
class Compares(Rule):
    def __init__(self, base_trial, other_trials):
        super().__init__(base_trial, other_trials)
        self.differences = []

    def invoke_at_step(self, step):
        ours, theirs = (trial.tensor("gradient/fc").value(step) for trial in self.trials)
        self.differences.append((step, float(abs(ours - theirs).max())))
        return False
"""


@pytest.mark.parametrize("known", [True, False])
def test_another_run_is_compared_up_to_its_last_step(tmp_path, known):
    watched = Watched(tmp_path, COMPARES, "Compares", other_trials=["s3://runs/other"])
    other = Saver(watched.small.place("other")).begin()
    for step in range(3):
        other.save(step, {"gradient/fc": np.array([0.5, step], np.float32)})
    if known:
        watched.settle()
    else:
        watched.small.bucket.notifications = [
            body for body in watched.small.bucket.notifications if "other/" not in body
        ]
    watched.save(*range(4))
    watched.settle()
    seen = [(0, 1.0), (1, 0.0), (2, 1.0)]
    assert watched.attributes()["differences"] == seen
    assert watched.group.cursor == 2, "it waits for the other one"
    other.save(3, {"gradient/fc": np.array([0.5, 1], np.float32)})
    watched.settle()
    watched.small.pass_time(100)
    assert watched.attributes()["differences"] == [*seen, (3, 0.0)]
    assert watched.status == "InProgress"


def test_a_rule_with_one_other_trial_gets_it(tmp_path):
    source = """
class Mine(Rule):
    def __init__(self, base_trial, other_trial, factor="1"):
        super().__init__(base_trial, other_trials=[other_trial])
        self.factor = float(factor)
        self.name = other_trial.name

    def invoke_at_step(self, step):
        return False
"""
    watched = Watched(
        tmp_path, source, "Mine", other_trials=["s3://runs/other"], parameters={"factor": "0.5"}
    )
    other = Saver(watched.small.place("other")).begin()
    other.save(0)
    watched.save(0)
    watched.settle()
    watched.small.pass_time(100)
    assert watched.attributes() == {"factor": 0.5, "name": "other"}


def test_its_credentials_open_its_run_the_others_and_its_own_state(tmp_path):
    watched = Watched(tmp_path, COMPARES, "Compares", other_trials=["s3://runs/other"], name="a rule.of ours")
    watched.save(0)
    watched.small.deliver()
    (group,) = (name for name in watched.small.index.run(RUN).groups if name != "builtin")
    handed = claim(watched.small.world, RUN, group, 0)
    (policy,) = watched.small.lender.policies.values()
    named = [
        arn.removeprefix("arn:aws:s3:::")
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow" and "s3:" in str(statement["Action"])
        for arn in (
            [statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"]
        )
    ]
    own = handed["job"]["state_key"].rpartition("/")[0]
    files = ["events/*", "index/*", "collections/*", "training_job_end.ts", f"{own}/*"]
    assert named == [*(f"runs/mnist/{file}" for file in files), "runs/other/*", f"runs/mnist/{own}/*", "runs"]
    assert own.startswith("state/")
    assert " " not in own
    assert ".." not in own
    assert "*" not in own
    assert watched.small.lender.seconds == [900]
