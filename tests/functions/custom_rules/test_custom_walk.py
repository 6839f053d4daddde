"""A custom rule on a run, through claim, run and commit: what it sees, remembers and finds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from functions.arrivals.rules_file import groups_of, requested_rules
from functions.custom_rules import jobs
from functions.custom_rules.claiming import claim
from functions.custom_rules.judging import commit_answer
from functions.rule_groups import GroupBusy, LeaseLost
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import GroupRecord
from tests.functions.custom_rules.watched import COUNTS, RUN, Watched, invoking
from tests.functions.saver import FAILING, Saver


def test_a_custom_rule_evaluates_saved_steps_and_its_finding_is_published(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": "3"})
    for step in range(5):
        watched.save(step)
        watched.settle()

    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["rule"], found["group"]) == (3, "Counts", watched.group.group)
    assert found["evidence"]["worst"] == [
        {
            "tensor": "gradient/fc",
            "statistic": "count",
            "value": 4,
            "threshold": 3,
            "message": "gradient/fc: count 4 (limit 3)",
        }
    ]
    assert found["mode"] == "TRAIN"
    assert found["last_good_step"] == 2
    assert all(
        found["times"][name] for name in ("saved", "uploaded", "indexed", "evaluated", "published")
    )
    assert watched.status == "IssuesFound"
    assert watched.group.outbox == {}
    watched.end()
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_a_group_that_went_on_before_its_rule_was_known_begins_anew_with_it(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": "1"})
    small = watched.small
    watched.place.delete("rules.json")
    watched.save(0, 1, 2)
    small.settle()  # with the default rules
    watched.want(watched.wanted)
    (group,) = groups_of(small.world, requested_rules(small.world, RUN)[0])[1:]
    small.index.groups.begin(RUN, GroupRecord(group, cursor=2, finished=True))
    watched.settle()
    small.pass_time(10)
    assert small.index.run(RUN).groups == ("builtin", group)
    assert [step for step, _ in watched.attributes()["seen"]] == [0, 1, 2]
    assert watched.status == "IssuesFound"


def test_its_memory_survives_from_claim_to_claim_as_if_it_had_never_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 3)
    in_pieces = Watched(tmp_path / "pieces", parameters={"limit": 100})
    at_once = Watched(tmp_path / "once", parameters={"limit": 100})
    for step in range(11):
        in_pieces.save(step)
        if step in (0, 1, 9):
            in_pieces.settle()
    in_pieces.settle()
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 100)
    at_once.save(*range(11))
    at_once.settle()

    assert in_pieces.rule.state == at_once.rule.state
    assert in_pieces.attributes()["seen"] == [(step, 1.5) for step in range(11)]
    assert (in_pieces.group.cursor, at_once.group.cursor) == (10, 10)


def test_a_large_memory_is_kept_in_an_object_of_its_own_that_no_other_lease_uses(tmp_path):
    source = invoking(
        """
        self.all = np.concatenate([getattr(self, "all", np.zeros(0)), np.full(300, step)])
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    keys = []
    for step in range(3):
        watched.save(step)
        watched.settle()
        keys.append(watched.rule.state_key)
    assert len(set(keys)) == 3
    group, rule = watched.group.group, watched.rule.id
    assert all(key.startswith(f"state/{group}/{rule}/") for key in keys)
    assert watched.rule.state == b""
    np.testing.assert_array_equal(watched.attributes()["all"], np.repeat([0, 1, 2], 300))


def test_a_late_step_is_evaluated_and_marked(tmp_path):
    source = invoking("self.findings = [f'step {step}']; return step == 1")
    watched = Watched(tmp_path, source, "Mine", repeat="every_step")
    old = Saver(watched.place, run_id=None).begin()
    old.save(0)
    old.save(2)
    watched.settle()
    old.save(1)
    watched.settle()
    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert found["step"] == 1
    assert found["late"]
    assert watched.group.cursor == 2
    assert watched.group.late_done == {1}


def test_steps_that_it_does_not_want_are_passed_over_without_running_it(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100}, start_step=3, end_step=5)
    watched.save(*range(8))
    watched.settle()
    assert watched.attributes()["seen"] == [(3, 1.5), (4, 1.5)]
    assert watched.group.cursor == 7
    tokens = watched.group.token
    watched.save(8)
    ran = []
    watched.small.run_rule = lambda *job, **more: ran.append(job)
    watched.settle()
    assert (watched.group.cursor, ran) == (8, [])
    assert watched.group.token == tokens + 1
    watched.end()
    assert watched.status == "NoIssuesFound"


def test_it_reads_steps_before_those_in_its_job(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "HISTORY", (2, 0))
    source = invoking(
        """
        tensor = self.base_trial.tensor("gradient/fc")
        self.steps = tensor.prev_steps(step, 50)
        self.values = [float(tensor.value(one)[1]) for one in self.steps]
        self.names = self.base_trial.tensor_names()
        self.later = [one for one in self.base_trial.steps() if one > step]
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    for step in range(12):
        name = "gradient/early" if step == 1 else "gradient/late"
        watched.save(
            step,
            tensors={"gradient/fc": np.array([1, step], np.float32), name: np.ones(1, np.float32)},
        )
        if step % 5 == 0:
            watched.settle()
    watched.settle()
    kept = watched.attributes()
    assert kept["steps"] == list(range(12))
    assert kept["values"] == [float(step) for step in range(12)]
    assert kept["names"] == ["gradient/early", "gradient/fc", "gradient/late"]
    assert kept["later"] == []


def test_names_that_are_too_many_for_a_job_are_read_from_the_run(tmp_path, monkeypatch):
    source = invoking("self.names = self.base_trial.tensor_names(); return False")
    watched = Watched(tmp_path, source, "Mine")
    watched.save(0, tensors={"first": np.ones(2, np.float32)})
    watched.save(1, tensors={"gradient/second": np.ones(2, np.float32)})
    monkeypatch.setattr(jobs, "LARGEST_PACKED", 10)
    watched.settle()
    assert watched.attributes()["names"] == ["first", "gradient/second"]


def test_modes_and_collections_are_those_of_the_run(tmp_path):
    source = invoking(
        """
        mode, number = self.base_trial.mode_modestep(step)
        names = self.base_trial.tensor_names(step=step, collection="gradients")
        self.seen = [*getattr(self, "seen", []), (mode.name, number, names)]
        return False
        """
    )
    watched = Watched(tmp_path, source, "Mine")
    watched.save(0)
    watched.save(1, mode=ModeKeys.EVAL, mode_step=0)
    watched.save(2, mode_step=1)
    watched.settle()
    assert watched.attributes()["seen"] == [
        ("TRAIN", 0, ["gradient/fc"]),
        ("EVAL", 0, ["gradient/fc"]),
        ("TRAIN", 1, ["gradient/fc"]),
    ]


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


def test_a_rule_that_takes_one_other_trial_is_given_it(tmp_path):
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


def test_a_rule_deployed_in_a_function_of_its_own_is_run_from_its_file(tmp_path):
    watched = Watched(tmp_path)
    file = tmp_path / "counts.py"
    file.write_text("from smdebug.rules import Finding, Rule\n" + COUNTS)
    watched.small.settings.custom_functions["Counts"] = "function-of-counts"
    watched.small.deployed["function-of-counts"] = file
    watched.want({"name": "mine", "rule": "Counts", "parameters": {"limit": "1"}})
    watched.save(0, 1)
    watched.settle()
    assert watched.found == [1]
    assert watched.rule.source_digest == ""


def test_the_error_for_a_removed_deployed_rule_names_the_remedy(tmp_path):
    watched = Watched(tmp_path)
    watched.small.settings.custom_functions["Counts"] = "function-of-counts"
    watched.want({"name": "mine", "rule": "Counts", "parameters": {"limit": "1"}})
    watched.small.deliver()
    del watched.small.settings.custom_functions["Counts"]
    watched.save(0, 1)
    watched.settle()
    assert watched.status == "Error"
    assert "is not deployed any more: put its file back" in watched.rule.reason
    assert watched.group.cursor == 1


def test_steps_before_a_rule_was_attached_are_evaluated_without_actions(tmp_path):
    watched = Watched(tmp_path)
    watched.want()
    watched.save(0, 1)
    watched.settle()
    found = invoking("return True")
    watched.put_source(found)
    watched.want(
        {**watched.wanted, "rule": "Mine", "repeat": "every_step", "actions": [{"name": "email"}]}
    )
    watched.settle()
    watched.save(2)
    watched.settle()
    found = [
        (detail["step"], detail["catch_up"], bool(detail["actions"]))
        for detail in watched.small.details("Rule Evaluation Condition Met")
    ]
    assert found == [(0, True, False), (1, True, False), (2, False, True)]


def test_a_detached_rule_is_stopped_and_its_answer_on_the_way_is_not_taken(tmp_path):
    watched = Watched(tmp_path, invoking("return True"), "Mine", repeat="every_step")
    watched.save(0)
    watched.settle()
    watched.save(1)
    run = watched.small.run_rule

    def detached_meanwhile(job, **more):
        answer = run(job, **more)
        watched.want()
        watched.small.deliver()
        return answer

    watched.small.run_rule = detached_meanwhile
    watched.settle()
    assert watched.status == "Stopped"
    assert watched.found == [0]


def test_a_training_that_resumes_while_the_rule_runs_is_evaluated_anew(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(0, 1)
    run = watched.small.run_rule

    def resumed_meanwhile(job, **more):
        answer = run(job, **more)
        watched.small.run_rule = run
        watched.small.clock.time += 60
        Saver(watched.place, training_run=1).begin().save(0)
        watched.small.deliver()
        return answer

    watched.small.run_rule = resumed_meanwhile
    watched.settle()
    assert watched.attributes()["seen"] == [(0, 1.5)]
    assert watched.group.training_run == 1


def test_the_end_of_a_run_finishes_the_rule_once_it_has_seen_all(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "STEPS_A_CLAIM", 2)
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(*range(5))
    watched.end()
    assert watched.status == "NoIssuesFound"
    assert len(watched.attributes()["seen"]) == 5
    assert watched.small.index.run(RUN).state.value == "Finished"


def test_code_that_changes_during_a_run_is_refused(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(0)
    watched.settle()
    pinned = watched.rule.source_digest
    watched.put_source(COUNTS + "\n# changed\n")
    watched.save(1)
    watched.settle()
    assert watched.status == "Error"
    assert f"(sha256 {pinned[:12]}… became" in watched.rule.reason
    assert "upload changed rules under another key" in watched.rule.reason


def test_code_from_elsewhere_is_not_run(tmp_path):
    watched = Watched(tmp_path, invoking("return True"), "Mine", source="s3://elsewhere/rule.py")
    watched.save(0)
    watched.settle()
    assert watched.status == "Error"
    assert "this stack allows s3://runs/rule-sources/" in watched.rule.reason
    assert watched.group.cursor == 0
    assert watched.small.lender.policies == {}


def test_what_it_is_lent_opens_its_run_the_others_and_its_own_memory(tmp_path):
    watched = Watched(
        tmp_path, COMPARES, "Compares", other_trials=["s3://runs/other"], name="a rule.of ours"
    )
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
            [statement["Resource"]]
            if isinstance(statement["Resource"], str)
            else statement["Resource"]
        )
    ]
    own = handed["job"]["state_key"].rpartition("/")[0]
    assert named == ["runs/mnist/*", "runs/other/*", f"runs/mnist/{own}/*", "runs"]
    assert own.startswith("state/")
    assert " " not in own
    assert ".." not in own
    assert "*" not in own
    assert watched.small.lender.seconds == [900]


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


def test_a_death_that_was_chance_changes_nothing(tmp_path):
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
        {"steps": [{"step": 0, "outcome": "clear"}], "actions": [{"name": "stoptraining"}]},
        {"steps": [{"step": 0, "outcome": "clear"}], "state": {"key": "state/builtin/x.state"}},
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


def test_while_a_rule_runs_nobody_else_claims_its_steps(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(0)
    watched.small.deliver()
    group = watched.group.group
    handed = claim(watched.small.world, RUN, group, 0)
    assert handed["function"] == "sandbox"
    with pytest.raises(GroupBusy):
        claim(watched.small.world, RUN, group, 0)


def test_a_commit_after_the_lease_was_taken_over_changes_nothing(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 0})
    watched.save(0)
    watched.small.deliver()
    small, group = watched.small, watched.group.group
    first = claim(small.world, RUN, group, 0)
    answer = small.run_rule(first["job"])
    small.clock.time += 131
    second = claim(small.world, RUN, group, 0)
    with pytest.raises(LeaseLost):
        commit_answer(small.world, RUN, group, first["claim"], {"answer": answer})
    assert watched.group.cursor == -1
    answer = small.run_rule(second["job"])
    said = commit_answer(small.world, RUN, group, second["claim"], {"answer": answer})
    found = [
        event for event in said["outbox"] if event["DetailType"] == "Rule Evaluation Condition Met"
    ]
    assert [json.loads(event["Detail"])["step"] for event in found] == [0]


def test_a_repeated_commit_publishes_again_and_does_nothing_twice(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 0}, repeat="every_step")
    watched.save(0)
    watched.small.deliver()
    small, group = watched.small, watched.group.group
    handed = claim(small.world, RUN, group, 0)
    ran = {"answer": small.run_rule(handed["job"])}
    first = commit_answer(small.world, RUN, group, handed["claim"], ran)
    after = watched.group
    again = commit_answer(small.world, RUN, group, handed["claim"], ran)
    assert [event["Detail"] for event in again["outbox"]] == [
        event["Detail"] for event in first["outbox"]
    ]
    assert watched.group == after
    small.index.mark_published(**first["mark"])
    assert commit_answer(small.world, RUN, group, handed["claim"], ran)["outbox"] == []


def test_what_a_claim_hands_over_fits_through_the_state_machine(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(*range(60), tensors={f"layer/{at:05}/weight": np.ones(1) for at in range(500)})
    watched.small.deliver()
    handed = claim(watched.small.world, RUN, watched.group.group, 0)
    assert len(json.dumps(handed)) < 120_000
    assert [step["step"] for step in handed["claim"]["steps"]] == list(range(25))
    claimed = jobs.Claimed.from_dict(json.loads(json.dumps(handed["claim"])))
    assert claimed.steps[0] == replace(
        claimed.steps[1],
        step=0,
        mode_step=0,
    )
