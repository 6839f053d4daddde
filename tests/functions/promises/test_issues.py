"""An issue opens once and is resolved once; rules keep their state between invocations."""

from __future__ import annotations

import json
import random

from functions.decisions.rule_states import is_inline
from functions.evaluation.run_history import IndexedHistory
from smdebug.mode_keys import ModeKeys
from smdebug.service.step_index.items import LARGEST_PACKED_STATE
from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.promises.runs import RUN, found_steps
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


def test_an_issue_opens_once_and_is_resolved_once(small):
    worker = Saver(small.place()).begin()
    for step, tensors in enumerate([HEALTHY, FAILING, FAILING, HEALTHY, HEALTHY, FAILING]):
        worker.save(step, tensors)
        small.settle()
    assert found_steps(small) == [1, 5]
    (resolved,) = small.details("Rule Issue Resolved")
    assert resolved["step"] == 3
    assert resolved["issue"]["since"] == 1


def test_the_event_of_a_symptom_names_its_cause_also_from_an_earlier_step():
    small = SmallWorld(stack_settings(default_rules=("VanishingGradient", "LossNotDecreasing")))
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ["VanishingGradient",'
        b' {"rule": "LossNotDecreasing", "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(small.place()).begin()
    for step in range(4):
        worker.save(step, {"gradient/fc": 1e-9, "loss": 1.0})
        small.settle()
    diagnoses = {
        detail["rule"]: detail["diagnosis"] for detail in small.details("Rule Evaluation Condition Met")
    }
    cause, symptom = diagnoses["VanishingGradient"], diagnoses["LossNotDecreasing"]
    assert (cause["role"], cause["since"], cause["symptoms"]) == ("cause", 0, [])
    assert (symptom["role"], symptom["cause"]) == ("symptom", "vanishing gradient")
    assert [item["rules"] for item in symptom["symptoms"]] == [["LossNotDecreasing"]]
    assert symptom["try"] == cause["try"] != []
    assert symptom["docs"].endswith("rules.md#vanishinggradient")
    issues = {detail["rule"]: detail["issue"] for detail in small.details("Rule Evaluation Condition Met")}
    of_cause, of_symptom = issues["VanishingGradient"], issues["LossNotDecreasing"]
    assert of_cause["id"] == of_symptom["id"]
    assert (of_cause["role"], of_symptom["role"]) == ("cause", "symptom")


def test_a_step_without_the_tensor_does_not_resolve_an_issue():
    small = SmallWorld(stack_settings(default_rules=("VanishingGradient",)))
    worker = Saver(small.place()).begin()
    worker.save(0, {"gradient/fc": 1e-9})
    worker.save(1, {"accuracy": 0.5}, ModeKeys.EVAL, 0)
    small.settle()
    assert found_steps(small) == [0]
    assert small.details("Rule Issue Resolved") == []


def test_what_a_rule_remembers_survives_between_invocations():
    small = SmallWorld(stack_settings(default_rules=("LossNotDecreasing",)))
    place = small.place()
    place.write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "loss", "rule": "LossNotDecreasing",'
        b' "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(place).begin()
    for step, loss in enumerate([5.0, 4.0, 3.0, 3.0, 3.0, 3.0]):
        worker.save(step, {"loss": loss})
        small.settle()
    assert found_steps(small) == [4]
    assert small.index.groups.get(RUN, "builtin").rules[0].state


def test_a_large_memory_is_kept_in_an_object_of_its_own(monkeypatch):
    monkeypatch.setattr("functions.decisions.rule_states.LARGEST_INLINE_STATE", 10)
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "loss", "rule": "LossNotDecreasing",'
        b' "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(small.place()).begin()
    for step, loss in enumerate([5.0, 4.0, 3.0, 3.0, 3.0, 3.0]):
        worker.save(step, {"loss": loss})
        small.settle()
    assert found_steps(small) == [4]
    (rule,) = small.index.groups.get(RUN, "builtin").rules
    assert rule.state == b""
    assert rule.state_key.startswith("state/builtin/")
    assert rule.state_key.isascii()
    assert small.place().exists(rule.state_key)


def test_a_state_that_packs_well_costs_no_request_of_its_own():
    """An object costs eight times what a kilobyte of an item costs, at every step."""
    assert is_inline(json.dumps([[step, 0.0] for step in range(400)]).encode())
    assert not is_inline(random.Random(0).randbytes(1500))
    assert not is_inline(b"0" * (LARGEST_PACKED_STATE + 1))  # forty of them fit into an item


def expiring(small):
    """The items of the run that the table may delete at some time, without the run's own age."""
    found = {item["sk"] for item in small.items.query(f"RUN#{RUN}") if "expires" in item}
    return {sk.partition("#")[0] for sk in found}


def test_only_steps_and_findings_of_a_live_run_expire(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    assert expiring(small) == {"STEP", "FINDING", "OUTBOX"}
    assert all("expires" not in item for item in small.items.query("RUNS"))


def test_all_items_of_a_finished_run_expire_and_are_kept_again_when_it_resumes(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    worker.end()
    small.settle()
    small.pass_time(4000)
    small.sweep()
    everything = {
        "CLOSED",
        "OUTBOX",
        "RUN",
        "RULES",
        "COLLECTIONS",
        "GROUP",
        "LAYOUT",
        "STEP",
        "FINDING",
    }
    assert expiring(small) == everything
    Saver(small.place(), training_run=1).begin()
    small.settle()
    assert expiring(small) == {"CLOSED", "OUTBOX", "STEP", "FINDING"}


def test_a_rule_finds_nan_in_a_run_that_outlives_the_retention_of_its_steps(small):
    """The table deletes what is older than the retention, as DynamoDB would."""
    worker = Saver(small.place()).begin()
    for day in range(0, 200, 5):
        worker.save(day, FAILING if day == 195 else HEALTHY)
        small.settle()
        small.clock.time += 5 * 86_400
        for item in small.items.query(f"RUN#{RUN}"):
            if item.get("expires", small.clock.now()) < small.clock.now():
                small.items.delete(item["pk"], item["sk"])
    assert found_steps(small) == [195]
    assert small.statuses() == {"ExplodingTensor": "IssuesFound"}


def test_expired_steps_are_found_by_listing(small):
    place = small.place()
    worker = Saver(place).begin()
    for step in range(4):
        worker.save(step, HEALTHY)
        small.settle()
        small.clock.time += 40 * 86_400
    for item in small.items.query(f"RUN#{RUN}"):
        if item.get("expires", small.clock.now()) < small.clock.now():
            small.items.delete(item["pk"], item["sk"])
    record = small.index.run(RUN)
    known = [step.step for step in small.index.steps(RUN, 0)]
    history = IndexedHistory(small.index, record, place)
    assert (known, [step.step for step in history.before(4)]) == ([2, 3], [3, 2, 1, 0])
    assert (history.at(0).workers, history.at(7)) == (("worker_0",), None)


def test_nothing_is_listed_for_the_history_of_a_younger_run(small):
    place = small.place()
    Saver(place).begin().save(5, HEALTHY)
    small.settle()
    place.list = None
    history = IndexedHistory(small.index, small.index.run(RUN), place)
    assert [step.step for step in history.before(9)] == [5]


def test_a_run_that_is_silent_for_the_retention_period_is_closed_as_abandoned(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.clock.time += 91 * 86_400  # nobody has woken up
    small.sweep()
    record = small.index.run(RUN)
    assert (record.state.value, record.verdict) == ("Finished", "NoIssuesFound")
    assert "closed as abandoned" in record.trouble
    assert small.index.watched_runs() == []
