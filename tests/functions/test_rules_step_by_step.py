"""Rules that accumulate, woken step by step, find what they find over the whole run."""

from __future__ import annotations

import json

import pytest

from smdebug.files.names import step_file
from smdebug_rules.catalog import CATALOG
from smdebug_rules.trees.create_xgboost_report import REPORT
from tests.functions.small_world import SmallWorld
from tests.rules.made_runs import MadeRun
from tests.smdebug_rules.support import fires_at
from tests.trainings.failures import FAILURES, Failure
from tests.trainings.trees import boosted

ACCUMULATING = {
    "LossNotDecreasing",
    "Overfit",
    "Overtraining",
    "StalledTrainingRule",
    "ClassImbalance",
    "CheckInputImages",
    "PoorWeightInitialization",
}
CASES = [case for case in FAILURES if case.rule in ACCUMULATING and isinstance(case, Failure)]


def woken_by(run: MadeRun, rule: str, parameters: dict) -> SmallWorld:
    """Return the rule after the files of the run have arrived step by step."""
    small = SmallWorld()
    configuration = {"name": rule, "rule": rule, "parameters": parameters}
    small.place().write(
        "rules.json",
        json.dumps({"version": 1, "default_rules": False, "rules": [configuration]}).encode(),
    )
    step = None
    for key in sorted(run.storage.list(""), key=_in_order):
        if step_file(key) and step_file(key).step != step:
            small.settle()
            step = step_file(key).step
        small.place().write(key, run.storage.read(key))
    small.settle()
    small.pass_time(2000)
    return small


def _in_order(key: str) -> tuple[int, int, str]:
    """Collections, then steps, each with its event file first, then the end."""
    name = step_file(key)
    if name is None:
        return (-1 if key.startswith("collections") else 10**9, 0, key)
    return (name.step, not key.startswith("events"), key)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_that_accumulates_finds_the_same_when_it_is_woken_by_each_step(case):
    run = case.failing(5)
    parameters = {name: str(value) for name, value in case.parameters.items()}
    straight = fires_at(CATALOG[case.rule].load()(run.trial(), **parameters))
    small = woken_by(run, case.rule, parameters)
    found = small.details("Rule Evaluation Condition Met")
    assert found[0]["step"] == straight[0]
    assert small.statuses() == {case.rule: "IssuesFound"}


def test_the_report_of_an_xgboost_training_is_written_beside_the_run():
    small = woken_by(boosted(depth=3, relevant=4, seed=0), "CreateXgboostReport", {})
    assert small.statuses() == {"CreateXgboostReport": "NoIssuesFound"}
    assert b"rmse by step" in small.place().read(REPORT)


def test_every_rule_that_accumulates_has_a_case():
    assert {case.rule for case in CASES} == ACCUMULATING
