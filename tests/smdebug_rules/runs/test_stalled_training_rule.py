from __future__ import annotations

import json

import pytest

from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, SMDebugValueError
from smdebug.files.names import index_key
from smdebug_rules.runs.stalled_training_rule import StalledTrainingRule
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, found_data_at

LOSS = {"loss": [1.0]}


@pytest.fixture(autouse=True)
def no_last_look_at_a_run_that_ends(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


class AtOnce(StalledTrainingRule):
    """Time passes while it waits, and what is planned happens then."""

    def __init__(self, trial, plan=(), **parameters):
        super().__init__(trial, **parameters)
        type(self).clock = [1000.0]
        type(self).plan = list(plan)

    @staticmethod
    def now():
        return AtOnce.clock[0]

    @staticmethod
    def pause(seconds):
        AtOnce.clock[0] += seconds
        while AtOnce.plan and AtOnce.plan[0][0] <= AtOnce.clock[0]:
            AtOnce.plan.pop(0)[1]()


def saved_at(run, step, seconds):
    run.save(step, LOSS)
    key = index_key(step, "worker_0")
    index = json.loads(run.storage.read(key))
    index["meta"]["saved_at"] = seconds
    index["meta"].pop("file_crc32c", None)
    run.storage.write(key, json.dumps(index).encode())
    return run


def test_a_step_that_came_late_is_found_by_the_times_in_the_files():
    run = MadeRun()
    for step, seconds in ((0, 1000.0), (10, 1500.0), (20, 5000.0), (30, 5100.0)):
        saved_at(run, step, seconds)
    found = findings_by_step(StalledTrainingRule(run.end().trial(), threshold="1800"))
    assert {step: str(item[0]) for step, item in found.items()} == {
        20: "no step saved for 3500 s after step 10 (limit 1800 s)"
    }
    assert found[20][0].details == {"last_good_step": 10}


def test_files_without_times_are_ignored():
    run = made_run({0: LOSS})
    key = index_key(0, "worker_0")
    index = json.loads(run.storage.read(key))
    for name in ("saved_at", "file_crc32c"):
        index["meta"].pop(name, None)
    run.storage.write(key, json.dumps(index).encode())
    assert found_data_at(StalledTrainingRule(run.trial()), 0) is False


def test_a_silence_is_reported_once_while_it_lasts_and_the_end_is_none():
    run = saved_at(MadeRun(), 0, 1000.0)
    plan = [(1300.0, lambda: saved_at(run, 1, 1300.0)), (1900.0, run.end)]
    rule = AtOnce(run.trial(), plan, threshold=100)
    rule.invoke(0)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(1)
    assert 1100 <= AtOnce.clock[0] < 1111
    assert str(met.value.findings[0]).endswith("after step 0 (limit 100 s)")
    rule.invoke(1)  # waits until it comes, and does not tell of the same silence twice
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(2)
    with pytest.raises(NoMoreData):
        rule.invoke(2)


def test_before_the_first_step_it_counts_from_when_it_was_asked():
    with pytest.raises(RuleEvaluationConditionMet) as met:
        AtOnce(MadeRun().trial(), threshold="60").invoke(0)
    assert "s since the rule started" in str(met.value.findings[0])
    run = MadeRun()
    patient = AtOnce(run.trial(), [(1300.0, run.end)], threshold=60, before_first_step="False")
    with pytest.raises(NoMoreData):
        patient.invoke(0)


def test_a_silence_before_the_first_step_is_reported_once_too():
    run = MadeRun()
    plan = [(1200.0, lambda: saved_at(run, 2, 1200.0)), (1500.0, run.end)]
    rule = AtOnce(run.trial(), plan, threshold=60)
    found = findings_by_step(rule)
    assert list(found) == [0, 3]
    assert str(found[0][0]) == "no step saved for 60 s since the rule started (limit 60 s)"
    assert "after step 2" in str(found[3][0])


@pytest.mark.parametrize(
    "configured",
    [
        '{"name": "sms", "endpoint": "+4915112345678"}',
        '[{\\"name\\": \\"sms\\", \\"endpoint\\": \\"+4915112345678\\"}]',
        [{"name": "sms", "endpoint": "+4915112345678"}],
    ],
    ids=["JSON", "JSON as SageMaker's SDK writes it", "a list"],
)
def test_stopping_needs_to_know_the_job_and_is_an_action(configured):
    trial = MadeRun().trial()
    with pytest.raises(SMDebugValueError, match="needs training_job_name_prefix"):
        StalledTrainingRule(trial, stop_training_on_fire="True")
    rule = StalledTrainingRule(
        trial,
        stop_training_on_fire="True",
        training_job_name_prefix="my-Job",
        action_str=configured,
    )
    assert len(rule._actions) == 2
