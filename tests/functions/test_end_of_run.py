"""Rules that judge several steps together are evaluated once more when the run has ended."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from functions.evaluation.asking import DEATHS_BEFORE_ALONE
from functions.evaluation.built_in import evaluate
from smdebug.mode_keys import ModeKeys
from smdebug.rules.memory.state import read_state
from smdebug_rules.loss.overfit import Overfit
from tests.functions.custom_rules.watched import Watched
from tests.functions.promises.runs import RUN, found_steps, summaries
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def rules_file_with(**rule: Any) -> bytes:
    return json.dumps({"version": 1, "default_rules": False, "rules": [{"name": "rule", **rule}]}).encode()


def overfitting(*losses: tuple[ModeKeys, float], **rule: Any) -> tuple[SmallWorld, Saver]:
    """Return a run in progress of which everything so far was evaluated."""
    small = SmallWorld()
    configuration = {"rule": "Overfit", "parameters": {"tensor_regex": "loss"}, **rule}
    small.place().write("rules.json", rules_file_with(**configuration))
    saver = Saver(small.place()).begin()
    save(saver, losses)
    small.settle()
    return small, saver


def save(saver: Saver, losses: Any, first: int = 0) -> None:
    for step, (mode, loss) in enumerate(losses, first):
        saver.save(step, {"loss": np.array([loss], np.float32)}, mode)


def end(small: SmallWorld, saver: Saver) -> None:
    saver.end()
    small.settle()
    small.pass_time(400)
    assert small.index.run(RUN).state.value == "Finished"


def rule_of(small: SmallWorld) -> Any:
    (rule,) = (rule for group in small.index.groups.all_of(RUN) for rule in group.rules)
    return rule


def test_a_single_block_of_validation_at_the_end_is_judged_with_the_run():
    small, saver = overfitting((TRAIN, 1), (EVAL, 5), (EVAL, 7))
    assert found_steps(small) == []
    end(small, saver)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["mode"], found["mode_step"]) == (2, "EVAL", 2)
    assert found["evidence"]["worst"][0]["value"] == 5.0
    assert small.statuses() == {"rule": "IssuesFound"}
    (summary,) = summaries(small)
    assert summary["statuses"] == {"IssuesFound": 1}


def test_what_is_found_at_the_end_and_the_last_status_are_committed_together():
    small, saver = overfitting((TRAIN, 1), (EVAL, 5))
    commits = []
    original = small.index.groups.commit

    def commit(run, record, outbox):
        commits.append((record.finished, sorted(entry["detail_type"] for entry in outbox.values())))
        return original(run, record, outbox)

    small.index.groups.commit = commit
    end(small, saver)
    finishing = [types for finished, types in commits if finished]
    assert finishing[0] == [
        "Rule Evaluation Condition Met",
        "Rule Evaluation Status Change",
        "SageMaker Training Job State Change",
    ]
    assert not any("Rule Evaluation Condition Met" in types for types in finishing[1:])


def test_a_run_that_continues_after_its_end_is_judged_as_if_it_had_not_ended():
    """What was judged at the end is half a block; the whole one counts once."""
    losses = [(TRAIN, 1), (EVAL, 5), (EVAL, 5), (TRAIN, 1), (EVAL, 1), (TRAIN, 1), (EVAL, 5)]
    parameters = {"patience": "2", "tensor_regex": "loss"}
    straight, saver = overfitting(*losses, parameters=parameters)
    end(straight, saver)

    small, saver = overfitting(*losses[:2], parameters=parameters)
    end(small, saver)
    remembered = read_state(rule_of(small).state)
    assert (remembered["block"], remembered["in_a_row"]) == (1, 0)
    save(saver, losses[2:], first=2)
    end(small, saver)
    assert read_state(rule_of(small).state) == read_state(rule_of(straight).state)
    assert found_steps(small) == found_steps(straight) == []


def test_an_issue_that_the_end_opened_is_resolved_by_a_step_after_it():
    small, saver = overfitting((TRAIN, 1), (EVAL, 5))
    end(small, saver)
    assert rule_of(small).issue_since == 1
    save(saver, [(TRAIN, 1), (EVAL, 1), (TRAIN, 1)], first=2)
    end(small, saver)
    assert found_steps(small) == [1]
    assert [detail["step"] for detail in small.details("Rule Issue Resolved")] == [3]


@pytest.mark.parametrize(("end_step", "expected"), [(2, [1]), (1, []), (None, [1])])
def test_a_rule_that_does_not_see_the_last_step_does_not_see_the_end(end_step, expected):
    small, saver = overfitting((TRAIN, 1), (EVAL, 5), end_step=end_step)
    end(small, saver)
    assert found_steps(small) == expected


def test_a_rule_that_is_attached_to_a_finished_run_is_asked_about_its_end():
    small, saver = overfitting((TRAIN, 1), (EVAL, 5), rule="ExplodingTensor")
    end(small, saver)
    small.place().write("rules.json", rules_file_with(rule="Overfit", parameters={"tensor_regex": "loss"}))
    small.settle()
    small.pass_time(400)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["catch_up"], found["actions"]) == (1, True, [])


class Death(BaseException):
    """The process has died."""


def test_a_function_that_dies_at_the_end_makes_the_rule_an_error(monkeypatch):
    small, saver = overfitting((TRAIN, 1), (EVAL, 5))

    def die(self, step):
        raise Death

    monkeypatch.setattr(Overfit, "invoke_at_end", die)
    saver.end()
    small.broken.add("builtin")  # it is not evaluated yet
    small.settle()
    small.pass_time(2000)
    small.broken.clear()
    assert small.index.run(RUN).has_ended
    for _ in range(DEATHS_BEFORE_ALONE + 1):
        with pytest.raises(Death):
            evaluate(small.world, RUN, "builtin", 1)
        small.clock.time += 200
    small.pass_time(900)
    assert small.statuses() == {"rule": "Error"}
    assert "while evaluating this rule alone" in rule_of(small).reason


# Rules of one's own

SUMS = """
class Sums(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = []

    def invoke_at_step(self, step):
        self.seen.append(step)
        self.looked = False
        return False

    def invoke_at_end(self, step):
        %s
        self.findings.append(f"{len(self.seen)} steps, the last was {self.base_trial.steps()[-1]}")
        self.seen.append("the end")
        return True
"""


@pytest.mark.parametrize("known_before", [True, False])
def test_a_custom_rule_is_evaluated_at_the_end_in_its_own_process(tmp_path, known_before):
    watched = Watched(tmp_path, SUMS % "", "Sums")
    watched.save(0, 1, 5)
    if known_before:
        watched.settle()
    watched.end()
    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["mode"]) == (5, "TRAIN")
    assert found["evidence"]["worst"][0]["message"] == "3 steps, the last was 5"
    assert watched.status == "IssuesFound"
    assert watched.attributes()["seen"] == [0, 1, 5]
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_a_rule_without_a_word_for_the_end_is_not_run_again(tmp_path):
    watched = Watched(tmp_path, SUMS.replace("invoke_at_end", "at_the_end") % "", "Sums")
    watched.save(0, 1)
    watched.settle()
    jobs = []
    original = watched.small.run_rule

    def run(job, **more):
        jobs.append(job)
        return original(job, **more)

    watched.small.run_rule = run
    watched.end()
    assert (jobs, watched.status) == ([], "NotChecked")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('too much')", "at step 1: ValueError: too much"),
        ("os._exit(3)", "It died twice at the end, after step 1: it ended with exit code 3"),
    ],
)
def test_a_rule_that_fails_at_the_end_is_an_error(tmp_path, body, reason):
    watched = Watched(tmp_path, SUMS % body, "Sums")
    watched.save(0, 1)
    watched.settle()
    watched.end()
    assert watched.status == "Error"
    assert reason in watched.rule.reason
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_a_run_that_continues_while_its_end_is_judged_has_not_ended_yet(tmp_path):
    watched = Watched(tmp_path, SUMS % "", "Sums")
    watched.save(0, 1)
    watched.settle()
    original = watched.small.run_rule

    def gone_on_meanwhile(job, **more):
        answer = original(job, **more)
        if job["at_end"] and watched.small.index.run(RUN).has_ended:
            watched.small.run_rule = original
            watched.save(2)
            watched.small.deliver()
        return answer

    watched.small.run_rule = gone_on_meanwhile
    watched.end()
    watched.small.pass_time(400)
    assert watched.found == [2]
    assert watched.attributes()["seen"] == [0, 1, 2]
    assert watched.status == "IssuesFound"


def test_what_the_last_step_and_the_end_have_found_are_two_findings(tmp_path):
    source = (SUMS % "").replace("return False", "return step == 1")
    watched = Watched(tmp_path, source, "Sums", repeat="every_step")
    watched.save(0, 1)
    watched.end()
    found = watched.small.details("Rule Evaluation Condition Met")
    assert [detail["step"] for detail in found] == [1, 1]
    assert len({detail["id"] for detail in found}) == 2
    assert [detail["evidence"]["count"] for detail in found] == [0, 1]
