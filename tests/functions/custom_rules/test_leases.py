"""The lease of a claim, and commits that come late or twice."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from functions.custom_rules import jobs
from functions.custom_rules.claiming import claim
from functions.custom_rules.judging import commit_answer
from functions.rule_groups import GroupBusy, LeaseLost
from smdebug.files.notes.checkpoints import Checkpoint
from tests.functions.custom_rules.watched import RUN, Watched


def test_while_a_rule_runs_its_steps_cannot_be_claimed_again(tmp_path):
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
    reply = commit_answer(small.world, RUN, group, second["claim"], {"answer": answer})
    found = [event for event in reply["outbox"] if event["DetailType"] == "Rule Evaluation Condition Met"]
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
    assert [event["Detail"] for event in again["outbox"]] == [event["Detail"] for event in first["outbox"]]
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


def test_a_claim_of_a_newer_release_is_read_without_its_new_fields():
    claimed = jobs.Claimed(3, "own", 0, (jobs.ClaimedStep(7, asked=True),), more=False, ended=False)
    sent = claimed.to_dict()
    newer = {**sent, "of_tomorrow": 1, "steps": [{**step, "of_tomorrow": 1} for step in sent["steps"]]}
    assert jobs.Claimed.from_dict(newer) == claimed


def test_checkpoints_pass_with_the_claim_within_its_bound_and_the_last_is_kept():
    few = (Checkpoint(-1, "start.pt"), Checkpoint(9, "s3://weights/9.pt", 7.5))
    noise = np.random.default_rng(0)
    many = tuple(Checkpoint(step, noise.bytes(500).hex()) for step in range(200))
    for given in (few, many):
        claimed = jobs.Claimed(3, "own", 0, (), more=False, ended=False, checkpoints=given)
        sent = json.loads(json.dumps(claimed.to_dict()))
        assert len(sent["checkpoints"]) <= jobs.LARGEST_CHECKPOINTS
        read = jobs.Claimed.from_dict(sent).checkpoints
        assert set(read) <= set(given)
        assert read[-1] == given[-1]
    assert jobs.Claimed.from_dict({**sent, "checkpoints": ""}).checkpoints == ()
    endless = jobs.Claimed(
        3, "own", 0, (), more=False, ended=False, checkpoints=(Checkpoint(0, noise.bytes(50_000).hex()),)
    )
    assert endless.to_dict()["checkpoints"] == ""


def test_a_claim_of_an_older_release_has_no_checkpoints():
    sent = jobs.Claimed(3, "own", 0, (), more=False, ended=False).to_dict()
    del sent["checkpoints"]
    assert jobs.Claimed.from_dict(sent).checkpoints == ()
