"""A problem with a run's files or rules is reported once, and everything else continues."""

from __future__ import annotations

import json

import pytest

from functions.evaluation.built_in import evaluate
from tests.functions.promises.runs import RUN, found_steps, report_every_step, summaries
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


def test_a_rule_that_cannot_be_made_is_an_error_and_the_others_continue():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "odd", "rule": "VanishingGradient", "parameters": {"threshold": "much"}},'
        b'{"name": "unknown", "rule": "VanishingGradeint"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    assert small.statuses() == {"odd": "Error", "unknown": "Error", "good": "IssuesFound"}
    reasons = {rule.name: rule.reason for rule in small.index.groups.get(RUN, "builtin").rules}
    assert "threshold" in reasons["odd"]
    assert "VanishingGradient" in reasons["unknown"]
    assert found_steps(small) == [0]


def test_the_default_rules_judge_a_run_beside_its_own_unless_they_are_switched_off():
    statuses = {}
    for switch in ("", '"default_rules": false, '):
        small = SmallWorld()
        content = f'{{{switch}"rules": [{{"name": "mine", "rule": "AllZero"}}, "ExplodingTensor"]}}'
        small.place().write("rules.json", content.encode())
        Saver(small.place()).begin().save(0, FAILING)
        small.settle()
        statuses[switch] = list(small.statuses())
    beside, alone = statuses.values()
    assert beside == ["mine", "ExplodingTensor", "VanishingGradient", "LossNotDecreasing"]
    assert alone == ["mine", "ExplodingTensor"]


def test_an_unreadable_rules_file_is_reported_and_default_rules_watch(small):
    small.place().write("rules.json", b'{"version": 1, "default_rules": false, "rules": [')
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    assert found_steps(small) == [0]
    troubles = {detail["trouble"] for detail in small.details("Run State Change")}
    assert any("rules.json" in trouble for trouble in troubles)


def test_a_rule_that_cannot_be_read_affects_no_other():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "a/b", "rule": "VanishingGradient"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    Saver(small.place()).begin().save(0, FAILING)
    small.settle()
    assert small.statuses() == {"good": "IssuesFound"}
    troubles = [detail["trouble"] for detail in small.details("Run State Change")]
    assert any("a/b" in trouble for trouble in troubles)


def test_a_late_notification_of_an_older_rules_file_changes_nothing():
    small = SmallWorld()
    place = small.place()
    place.write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": [{"name": "a", "rule": "AllZero"}]}',
    )
    older = small.bucket.hold_back()
    place.write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": [{"name": "b", "rule": "ExplodingTensor"}]}',
    )
    small.settle()
    place.write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": [{"name": "a", "rule": "AllZero"}]}',
    )
    small.bucket.hold_back()
    small.bucket.release(older)
    small.settle()
    Saver(place).begin().save(0, HEALTHY)
    small.settle()
    assert set(small.statuses()) == {"b"}


def test_a_missing_worker_is_reported_once_while_the_run_continues(small):
    worker = Saver(small.place(), num_workers=2).begin()
    for step in range(30):
        worker.save(step, FAILING)
        small.settle()
        small.pass_time(120)
    run = small.index.run(RUN)
    assert "Step 0 was saved by 1 of 2 workers" in run.trouble
    assert "worker_1 is missing" in run.trouble
    troubles = [detail["trouble"] for detail in small.details("Run State Change") if detail["trouble"]]
    assert troubles == [run.trouble]
    worker.end()
    small.settle()
    small.pass_time(2000)
    (summary,) = summaries(small)
    counts = (summary["steps"], summary["partly_evaluated"], summary["not_evaluated"])
    assert counts == (0, 30, 0)
    assert summary["verdict"] == "IssuesFound"  # in what the worker that lives has saved
    assert small.index.run(RUN).state.value == "Finished"


def test_a_missing_collections_file_is_reported(small):
    Saver(small.place()).save(0, FAILING)
    small.settle()
    small.pass_time(1300)
    troubles = [detail["trouble"] for detail in small.details("Run State Change") if detail["trouble"]]
    assert len(troubles) == 1
    assert "no collections file has arrived" in troubles[0]


def test_a_rule_that_is_changed_during_the_run_is_stopped_and_begins_again():
    small = SmallWorld()

    def want(threshold: str) -> None:
        configured = {
            "name": "tiny",
            "rule": "VanishingGradient",
            "parameters": {"threshold": threshold},
        }
        small.place().write(
            "rules.json",
            json.dumps({"version": 1, "default_rules": False, "rules": [configured]}).encode(),
        )
        small.settle()
        small.pass_time(10)

    worker = Saver(small.place()).begin()
    want("1e-12")
    worker.save(0, {"gradient/fc": 1e-9})
    small.settle()
    want("1e-3")
    changes = [
        (detail["configuration"]["parameters"]["threshold"], detail["status"])
        for detail in small.details("Rule Evaluation Status Change")
    ]
    assert ("1e-12", "Stopped") in changes
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["catch_up"]) == (0, True)
    assert found["configuration"]["parameters"] == {"threshold": "1e-3"}


def test_an_invalid_later_rules_file_is_reported_and_rules_continue():
    small = SmallWorld()
    report_every_step(small)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    small.place().write("rules.json", b'{"rules": ')
    small.settle()
    worker.save(1, FAILING)
    small.settle()
    assert found_steps(small) == [0, 1]
    assert "it is not JSON" in small.index.run(RUN).trouble
    troubles = [detail["trouble"] for detail in small.details("Run State Change") if detail["trouble"]]
    assert troubles == [small.index.run(RUN).trouble]


def test_a_problem_that_was_fixed_is_no_longer_reported(small):
    small.place().write("rules.json", b'{"rules": ')
    first = Saver(small.place(), num_workers=2).begin()
    first.save(0, HEALTHY)
    small.settle()
    small.pass_time(1300)
    wrong = small.index.run(RUN).trouble
    assert "it is not JSON" in wrong
    assert "worker_1 is missing" in wrong
    small.place().write("rules.json", b'{"version": 1, "default_rules": false, "rules": []}')
    Saver(small.place(), "worker_1", num_workers=2).save(0, HEALTHY)
    small.settle()
    small.pass_time(1300)
    assert small.index.run(RUN).trouble == ""


def test_a_place_that_another_training_uses_after_the_first_has_ended_is_a_new_attempt(small):
    report_every_step(small)
    first = Saver(small.place()).begin()
    first.save(0, FAILING)
    first.end()
    small.settle()
    small.pass_time(120)
    second = Saver(small.place(), run_id="run-2").begin()
    second.save(0, FAILING)
    small.settle()
    found = small.details("Rule Evaluation Condition Met")
    assert [(detail["run_id"], detail["training_run"], detail["step"]) for detail in found] == [
        ("run-1", 0, 0),
        ("run-2", 1, 0),
    ]
    run = small.index.run(RUN)
    assert (run.state.value, run.run_id, run.trouble) == ("Running", "run-2", "")


def test_a_damaged_index_file_is_reported_and_later_steps_are_evaluated(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    index = next(key for key in small.place().list("index/"))
    small.place().write(index, b'{"meta": {"mode": "TRAIN"')
    worker.save(1, FAILING)
    small.settle()
    assert found_steps(small) == [1]
    troubles = [detail["trouble"] for detail in small.details("Run State Change") if detail["trouble"]]
    assert any("Step 0" in trouble for trouble in troubles)


def test_a_function_that_dies_at_a_rule_makes_that_rule_an_error_and_no_other():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "deadly", "rule": "VanishingGradient"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.deliver()
    small.workflow.started.clear()

    class Death(BaseException):
        """The process is gone."""

    from smdebug_rules.gradients.vanishing_gradient import VanishingGradient

    def die(self, step):
        raise Death

    original, VanishingGradient.invoke_at_step = VanishingGradient.invoke_at_step, die
    try:
        for _ in range(3):
            with pytest.raises(Death):
                evaluate(small.world, RUN, "builtin", 0)
            small.clock.time += 200
        small.pass_time(900)
    finally:
        VanishingGradient.invoke_at_step = original
    assert small.statuses() == {"deadly": "Error", "good": "IssuesFound"}
    assert found_steps(small) == [0]


def test_a_step_is_found_behind_many_that_only_one_worker_saves(small):
    """One worker saves each step, the other every 120th: more than are read at a time."""
    often = Saver(small.place(), "worker_0", num_workers=2).begin()
    rarely = Saver(small.place(), "worker_1", num_workers=2).begin()
    for step in range(121):
        often.save(step, HEALTHY)
        if step % 120 == 0:
            rarely.save(step, FAILING if step else HEALTHY)
    small.settle()
    group = small.index.groups.get(RUN, "builtin")
    assert (group.cursor, group.evaluated, group.not_evaluated) == (120, 2, 0)
    assert found_steps(small) == [120]


def test_a_backlog_of_many_workers_is_evaluated_in_one_go(small):
    """Their steps take several items each, of which a page has a limited number."""
    workers = [Saver(small.place(), f"worker_{n}", num_workers=200) for n in range(200)]
    for worker in workers:
        worker.begin()
        for step in range(25):
            worker.save(step, {"loss": 1.0})
    started = small.workflow
    small.deliver()
    last = max(started.started.values(), key=lambda request: request["step"])
    started.started = {"only": last}
    small.execute()
    assert small.index.groups.get(RUN, "builtin").evaluated == 25
