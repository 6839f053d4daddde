"""What one tenant of a deployment tries on another: read its runs, stop its training, use up its money."""

from __future__ import annotations

import json

import numpy as np

from functions.custom_rules.claiming import claim
from functions.decisions.tenants import Tenants
from functions.followup.actions import ActionPorts, carry_out
from tests.functions import deployed_settings
from tests.functions.custom_rules.test_credentials import allows
from tests.functions.decisions.sample_events import every_kind
from tests.functions.saver import HEALTHY, Saver
from tests.functions.small_world import SmallWorld

SOURCE = b"""
from smdebug.rules import Rule


class Mine(Rule):
    def invoke_at_step(self, step):
        return False
"""
NO_TENANTS = Tenants()
SECRET = "runs/bob/secret"
EVENT = "events/000000000000/000000000000_worker_0.tfevents"
COMPARES = {"rule": "SimilarAcrossRuns", "name": "spy", "parameters": {"collection_names": "gradients"}}


def custom(name="spy", **more):
    return {"rule": "Mine", "name": name, "source": "s3://runs/rule-sources/mine.py", **more}


def attacked(*rules, run="alice/mine", with_tenants=NO_TENANTS, **settings):
    """A stack in which Bob has a run, and Alice one with these rules."""
    small = SmallWorld(deployed_settings.settings(sandbox="sandbox", tenants=with_tenants, **settings))
    small.bucket.run("rule-sources").write("mine.py", SOURCE)
    Saver(small.place("bob/secret")).begin().save(0, {"gradient/fc": np.ones(3, np.float32)})
    small.settle()
    place = small.place(run)
    content = {"version": 1, "default_rules": False, "rules": list(rules)}
    place.write("rules.json", json.dumps(content).encode())
    Saver(place).begin().save(0, HEALTHY)
    small.deliver()
    return small


def lent(small, run="runs/alice/mine"):
    """The credentials that the claims of the run's custom rules lend."""
    for group in small.index.run(run).groups:
        if group != "builtin":
            claim(small.world, run, group, 0)
    return list(small.lender.policies.values())


def rule_of(small, run="runs/alice/mine"):
    (rule,) = [rule for group in small.index.groups.all_of(run) for rule in group.rules]
    return rule


def test_a_custom_rule_is_lent_no_credentials_for_the_run_of_another_tenant():
    small = attacked(custom(other_trials=[f"s3://{SECRET}"]))
    assert not any(allows(policy, "s3:GetObject", f"{SECRET}/{EVENT}") for policy in lent(small))
    assert rule_of(small).status == "Error"
    assert f"s3://{SECRET}" in rule_of(small).reason


def test_a_built_in_rule_does_not_read_the_run_of_another_tenant():
    small = attacked({**COMPARES, "other_trials": [f"s3://{SECRET}"]})
    opened = []
    open_run = small.world.open_run
    object.__setattr__(small.world, "open_run", lambda run: opened.append(run) or open_run(run))
    small.settle()
    assert rule_of(small).status == "Error"
    assert opened == ["runs/alice/mine"]


def test_a_run_at_a_parent_of_others_reads_nothing_below_it():
    small = attacked(custom(), run="bob")
    policies = lent(small, "runs/bob")
    assert not any(allows(policy, "s3:GetObject", f"{SECRET}/{EVENT}") for policy in policies)
    assert not any(allows(policy, "s3:ListBucket", "runs", prefix="bob/secret/") for policy in policies)
    assert "runs/bob/secret" in small.index.run("runs/bob").trouble


class Account:
    """An account in which a job of Bob's is in progress; it notes what is done."""

    def __init__(self):
        self.stopped = []
        self.outcomes = []

    def in_progress(self, prefix):
        return [name for name in ["victim-job-2026"] if name.startswith(prefix)]

    def claims_of(self, name):
        from functions.decisions.job_ownership import claims_of

        return claims_of(
            {
                "TrainingJobName": name,
                "TrainingJobStatus": "InProgress",
                "OutputDataConfig": {"S3OutputPath": "s3://runs/bob/out"},
            },
            (),
        )

    def stop(self, name):
        self.stopped.append(name)

    def write_stop(self, run, body):
        pass

    def leave(self, message, *, after_seconds):
        pass

    def now(self):
        return 1000.0

    def claim(self, *about, **more):
        return True

    def settled(self, *about):
        return frozenset()

    def record_action(self, run, group, rule, outcome, outbox):
        self.outcomes.append(outcome)


def stop_from(run, job=None, prefix="victim"):
    action = {"name": "stoptraining", "training_job_prefix": prefix}
    detail = {**every_kind()["found"].detail, "run": run, "job": job, "actions": [action]}
    account = Account()
    carry_out(ActionPorts(*[account] * 7), detail)
    return account


def test_a_run_named_after_the_job_of_another_does_not_stop_it():
    for job in (None, "victim-job-2026"):
        account = stop_from("runs/alice/victim-job-2026/debug-output", job)
        assert account.stopped == []
        assert [outcome["done"] for outcome in account.outcomes] == [True, False]
        assert "runs/alice/victim-job-2026" in account.outcomes[1]["message"]


def test_fifty_custom_rules_become_no_fifty_functions():
    small = attacked(*(custom(f"rule-{number}") for number in range(50)))
    record = small.index.run("runs/alice/mine")
    assert len(record.groups) - 1 == small.settings.custom_rules_per_run == 10
    assert "50 custom rules" in record.trouble


def test_custom_rules_stop_when_their_budget_of_the_day_is_spent():
    small = attacked(custom(), custom_gb_seconds=1000)
    saver = Saver(small.place("alice/mine"))

    jobs = []

    def slow(job, **more):
        jobs.append(job)
        small.clock.time += 90
        steps = [step for step, _ in _steps_of(job)]
        return {"steps": [{"step": step, "outcome": "passed"} for step in steps]}

    small.run_rule = slow
    for step in range(1, 60):
        saver.save(step, HEALTHY)
        small.settle()
    assert rule_of(small).status == "Stopped"
    assert len(jobs) == 10  # after 900 of 1,000 GB-seconds, one of 120 may not begin
    stopped = small.details("Rule Evaluation Status Change")[-1]
    assert "900 of 1,000 GB-seconds on 2023-11-14" in stopped["reason"]
    assert small.index.run("runs/alice/mine").groups, "the other rules continue"


def _steps_of(job):
    from functions.custom_rules.jobs import unpacked

    return unpacked(job["about"])["steps"]


def test_the_bucket_itself_is_refused_as_a_run_and_an_event_says_so_once():
    small = attacked()
    small.events.clear()
    for step in range(3):
        small.bucket.notifications.append(_arrival(f"events/{step:012}/{step:012}_worker_0.tfevents"))
        small.settle()
    record = small.index.run("runs")
    assert (record.is_refused, record.groups, record.state) == (True, (), "Finished")
    (event,) = [detail for detail in small.details("Run State Change") if detail["run"] == "runs"]
    assert "a run at its root would contain all others" in event["trouble"]
    assert "runs" not in [watched.run for watched in small.index.watched_runs()]


def _arrival(key):
    created = {"bucket": {"name": "runs"}, "object": {"key": key, "sequencer": "01"}}
    return json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": created}]})


def test_a_run_inside_of_another_is_refused_until_that_one_has_ended():
    small = attacked()
    outer = "runs/alice/mine"
    inner = small.place("alice/mine/nested")
    saver = Saver(inner).begin()
    saver.save(0, HEALTHY)
    held = small.bucket.hold_back("nested/")
    small.bucket.release(held)
    small.settle()
    refused = small.index.run(f"{outer}/nested")
    assert refused.is_refused
    assert f"inside of the run s3://{outer}" in refused.trouble
    Saver(small.place("alice/mine")).end()
    small.settle()
    small.pass_time(4000)
    assert small.index.run(outer).has_ended
    saver.save(1, HEALTHY)
    small.settle()
    accepted = small.index.run(f"{outer}/nested")
    assert not accepted.is_refused
    assert accepted.groups == ("builtin",)


def test_the_source_of_another_tenant_is_not_run():
    tenants = Tenants((("alice", "runs/alice/"), ("bob", "runs/bob/")))
    source = "s3://runs/bob/rule-sources/mine.py"
    small = attacked(custom(source=source), with_tenants=tenants)
    small.bucket.run("bob/rule-sources").write("mine.py", SOURCE)
    assert lent(small) == []
    assert rule_of(small).status == "Error"
    assert "this run may use s3://runs/alice/rule-sources/" in rule_of(small).reason


def test_a_tenant_runs_rules_of_its_own():
    tenants = Tenants((("alice", "runs/alice/"), ("bob", "runs/bob/")))
    small = attacked(custom(source="s3://runs/alice/rule-sources/mine.py"), with_tenants=tenants)
    small.bucket.run("alice/rule-sources").write("mine.py", SOURCE)
    (policy,) = lent(small)
    assert allows(policy, "s3:GetObject", f"runs/alice/mine/{EVENT}")


def test_what_a_job_does_not_take_of_its_reservation_is_given_back():
    small = attacked(custom(), custom_gb_seconds=1000)
    saver = Saver(small.place("alice/mine"))

    jobs = []

    def quick(job, **more):
        jobs.append(job)
        small.clock.time += 3
        return {"steps": [{"step": step, "outcome": "passed"} for step, _ in _steps_of(job)]}

    small.run_rule = quick
    for step in range(1, 20):
        saver.save(step, HEALTHY)
        small.settle()
    assert len(jobs) > 10  # which together would have reserved more than there is
    assert small.index.budgets.spent("runs/alice/mine", "2023-11-14") == len(jobs) * 3 * 1024
    assert rule_of(small).status == "InProgress"


def test_the_budget_is_one_for_all_rules_of_a_run_and_new_each_day():
    small = attacked()
    most = 1000 * 1024
    spend = small.index.budgets.spend
    assert spend("runs/a", "2026-11-23", 600 * 1024, most=most)
    assert not spend("runs/a", "2026-11-23", 401 * 1024, most=most)
    assert spend("runs/a", "2026-11-23", 400 * 1024, most=most)
    assert not spend("runs/a", "2026-11-23", 1, most=most)
    assert spend("runs/a", "2026-11-24", 1, most=most)
    assert spend("runs/b", "2026-11-23", 1, most=most)
    assert small.index.budgets.spent("runs/a", "2026-11-23") == most


def test_a_rule_that_is_out_of_budget_is_not_attached_again_by_itself():
    small = attacked(custom(), custom_gb_seconds=119)  # less than a single job may take
    small.settle()
    assert rule_of(small).status == "Stopped"
    Saver(small.place("alice/mine")).save(1, HEALTHY)
    small.settle()
    assert rule_of(small).status == "Stopped"
    statuses = [detail["status"] for detail in small.details("Rule Evaluation Status Change")]
    assert statuses == ["Stopped"]
