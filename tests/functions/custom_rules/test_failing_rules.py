"""Custom rules that raise, die or answer something invalid."""

from __future__ import annotations

import pytest

from tests.functions.custom_rules.watched import RUN, Watched, invoking
from tests.functions.saver import FAILING


def test_a_rule_that_raises_is_an_error_with_the_step_and_stops_no_other(tmp_path):
    watched = Watched(tmp_path, invoking("return 1 / (step - 1) > 5"), "Mine")
    watched.want(
        watched.wanted,
        {"name": "failing", "rule": "ExplodingTensor"},
        {**watched.wanted, "name": "second", "parameters": {}, "start_step": 2},
    )
    watched.save(0, 1, 2)
    watched.settle()
    assert watched.status == "Error"
    assert watched.rule.reason == "at step 1: ZeroDivisionError: division by zero"
    watched.save(3, tensors=FAILING)
    watched.settle()
    assert watched.small.statuses() == {
        "mine": "Error",
        "failing": "IssuesFound",
        "second": "InProgress",
    }
    assert watched.group.cursor == 3, "nobody waits for it"
    watched.end()
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_a_rule_that_dies_is_tried_once_more_and_alone_and_after_that_is_an_error(tmp_path, capsys):
    watched = Watched(tmp_path, invoking("step == 2 and os._exit(1); return True"), "Mine")
    asked = []
    run = watched.small.run_rule

    def noting(job, **more):
        answer = run(job, **more)
        asked.append(([step["step"] for step in answer["steps"]], "died" in answer))
        return answer

    watched.small.run_rule = noting
    watched.save(*range(5))
    watched.settle()
    assert watched.status == "Error"
    assert watched.rule.reason == (
        "It died twice at step 2: it ended with exit code 1 before it had answered."
    )
    assert asked == [([], True), ([0, 1], False), ([], True)]
    assert watched.found == [0], "what it had said before counts"
    assert '"RuleErrors":[1.0]' in capsys.readouterr().out
    watched.save(5)
    watched.settle()
    assert watched.group.cursor == 5


def test_an_accidental_death_changes_nothing(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    run = watched.small.run_rule

    def killed_once(job, **more):
        watched.small.run_rule = run
        return {"steps": [], "died": {"step": 1, "message": "it ran out of memory"}}

    watched.small.run_rule = killed_once
    watched.save(*range(4))
    watched.settle()
    assert watched.status == "InProgress"
    assert (watched.rule.died_at, watched.rule.deaths) == (None, 0)
    assert watched.attributes()["seen"] == [(step, 1.5) for step in range(4)]


def test_a_run_that_cannot_be_read_is_tried_again_later(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    run = watched.small.run_rule
    answer = {"steps": [], "died": {"step": 0, "message": "S3 was not there", "later": True}}
    watched.small.run_rule = lambda job, **more: answer
    watched.save(0)
    watched.settle()
    assert (watched.status, watched.group.cursor) == ("InProgress", -1)
    watched.small.run_rule = run
    watched.small.pass_time(100)
    assert watched.attributes()["seen"] == [(0, 1.5)]
    answer["died"]["step"] = 1
    watched.small.run_rule = lambda job, **more: answer
    watched.save(1)
    watched.settle()
    watched.small.pass_time(3600)
    assert watched.status == "Error"
    assert "It died 10 times at step 1: S3 was not there" in watched.rule.reason


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"steps": [{"step": 0, "outcome": "found", "findings": [{"run": "runs/of-another"}]}]},
        {"steps": [{"step": 0, "outcome": "passed"}], "actions": [{"name": "stoptraining"}]},
        {"steps": [{"step": 0, "outcome": "passed"}], "state": {"key": "state/builtin/x.state"}},
    ],
)
def test_an_answer_that_is_refused_makes_the_rule_an_error_and_does_nothing_else(tmp_path, answer):
    watched = Watched(tmp_path, parameters={"limit": 0})
    watched.small.run_rule = lambda job, **more: answer
    watched.save(0)
    watched.settle()
    assert watched.status == "Error"
    assert watched.rule.reason.startswith("Its answer was refused. ")
    assert watched.found == []
    assert (watched.rule.state, watched.rule.state_key) == (b"", "")
    types = {event["DetailType"] for event in watched.small.events}
    assert "Rule Evaluation Condition Met" not in types


def test_a_finding_causes_only_the_actions_configured_for_the_run(tmp_path):
    source = invoking(
        "self.findings = [{'tensor': 'w', 'message': 'm', 'details': {'actions': [1]}}]; return True"
    )
    watched = Watched(tmp_path, source, "Mine", actions=[{"name": "email"}])
    watched.save(0)
    watched.settle()
    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert found["actions"] == [{"name": "email"}]
    assert found["run"] == RUN
