"""Resumed trainings and changing rules: the cases that the simulation found."""

from __future__ import annotations

import json

import pytest

from functions.decisions.detail_types import CONDITION_MET, STATUS_CHANGE
from functions.evaluation.built_in import evaluate
from smdebug.service.records import GroupRecord
from smdebug_rules.values.exploding_tensor import ExplodingTensor
from tests.functions.deployed_settings import settings
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
NO_DEFAULTS = settings(default_rules=())
EVERY_STEP = {"name": "failing", "rule": "ExplodingTensor", "repeat": "every_step"}
OTHER = {"name": "other", "rule": "ExplodingTensor", "repeat": "every_step"}


def ask_for(small: SmallWorld, *rules: dict) -> None:
    content = json.dumps({"version": 1, "default_rules": False, "rules": rules})
    small.place().write("rules.json", content.encode())


def found(small: SmallWorld, rule: str = "failing") -> list[tuple[int, int]]:
    return [
        (detail["training_run"], detail["step"])
        for detail in small.details(CONDITION_MET)
        if detail["configuration"]["name"] == rule
    ]


def held_back(small: SmallWorld) -> list[str]:
    return small.bucket.hold_back()


def resumed(small: SmallWorld, *, after: float = 30.0, **more: object) -> Saver:
    small.clock.time += after
    return Saver(small.place(), training_run=1, **more).begin()


# Attempts


def test_a_late_file_of_an_earlier_attempt_is_not_of_the_resumed_run():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    first.save(1, FAILING)
    late = held_back(small)
    again = resumed(small)
    small.settle()
    small.bucket.release(late)
    small.settle()
    assert found(small) == []
    again.save(1, FAILING)
    small.settle()
    assert found(small) == [(1, 1)]


def test_what_was_left_of_an_earlier_attempt_is_not_evaluated_at_the_end_of_the_resumed_one():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    first = Saver(small.place()).begin()
    for step in range(4):
        first.save(step, FAILING if step == 3 else HEALTHY)
    held_back(small)
    again = resumed(small)
    again.save(1, HEALTHY)
    again.end()
    small.settle()
    small.pass_time(300)
    assert small.index.run(RUN).state.value == "Finished"
    assert found(small) == []
    assert [step.step for step in small.index.steps(RUN, 1) if step.is_complete(1)] == [1]


def test_the_sweeper_takes_nothing_of_an_earlier_attempt_and_everything_of_the_resumed_one():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    first = Saver(small.place()).begin()
    for step in range(4):
        first.save(step, HEALTHY)
    held_back(small)
    small.clock.time += 100
    again = resumed(small)
    small.settle()
    again.save(1, FAILING)
    held_back(small)
    small.clock.time += 120
    small.sweep()
    small.pass_time(2)
    assert found(small) == [(1, 1)]
    assert small.sweep() == 0


def test_an_older_message_can_announce_a_resumed_training():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    small.settle()
    first = Saver(small.place()).begin()
    first.save(1, FAILING)
    late = held_back(small)
    again = resumed(small)
    news = held_back(small)
    small.bucket.release(late)  # reads what is there by now
    small.settle()
    assert small.index.run(RUN).training_run == 1
    assert found(small) == []
    again.save(1, FAILING)
    small.bucket.release(news)
    small.settle()
    assert found(small) == [(1, 1)]


def test_a_lost_notification_of_a_resumed_training_is_found_by_the_sweeper():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    Saver(small.place()).begin().save(1, HEALTHY)
    small.settle()
    again = resumed(small)
    again.save(1, FAILING)
    held_back(small)
    small.clock.time += 120
    assert small.sweep() > 0
    small.pass_time(2)
    assert found(small) == [(1, 1)]
    assert small.index.run(RUN).training_run == 1
    assert small.sweep() == 0


def test_an_attempt_that_ended_before_it_was_noted_is_finished():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    again = resumed(small)
    collections = held_back(small)
    again.save(0, HEALTHY)
    again.end()
    small.settle()
    small.bucket.release(collections)
    small.settle()
    small.pass_time(300)
    assert small.index.run(RUN).state.value == "Finished"


def test_the_search_for_the_files_of_a_resumed_training_is_repeated_after_a_crash(monkeypatch):
    from functions.lifecycle import last_listing

    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    again = resumed(small)
    older = held_back(small)
    again.save(1, FAILING)
    held_back(small)  # was recorded as of the first attempt, by a process that knew no other
    small.bucket.release(older)
    small.settle()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(last_listing, "record_listed", _dies)
        small.pass_time(2)
    small.checks.leave({"list": "runs/mnist"}, after_seconds=1)  # the service repeats it
    small.pass_time(2)
    assert found(small) == [(1, 1)]


def _dies(*arguments: object, **more: object) -> int:
    raise KeyboardInterrupt


def test_an_evaluation_with_an_outdated_record_evaluates_nothing_of_the_first_attempt(
    monkeypatch,
):
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    first.save(3, FAILING)
    small.deliver()
    small.workflow.started.clear()  # lost
    old = small.index.run(RUN)
    again = resumed(small)
    again.save(2, HEALTHY)
    small.settle()
    read = type(small.index).run
    known = [old]
    monkeypatch.setattr(
        type(small.index), "run", lambda index, run: known.pop() if known else read(index, run)
    )
    evaluate(small.world, RUN, "builtin", 3)
    assert not known
    assert found(small) == []
    assert small.index.groups.get(RUN, "builtin").cursor == 2


# Rules


def test_a_reattached_rule_starts_at_the_first_step():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP, OTHER)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    ask_for(small, OTHER)
    small.settle()
    assert small.statuses()["failing"] == "Stopped"
    worker.save(1, FAILING)
    small.settle()
    ask_for(small, EVERY_STEP, OTHER)
    small.settle()
    small.pass_time(120)
    worker.save(2, FAILING)
    small.settle()
    small.pass_time(120)
    assert small.statuses() == {"failing": "IssuesFound", "other": "IssuesFound"}
    assert sorted({step for _, step in found(small)}) == [0, 1, 2]
    for step in (3, 4):  # with nothing to tell, it joins the others
        worker.save(step, HEALTHY)
        small.settle()
        small.pass_time(120)
    assert [group.group for group in small.index.groups.all_of(RUN)] == ["builtin"]
    changes = [
        (detail["previous_status"], detail["status"])
        for detail in small.details(STATUS_CHANGE)
        if detail["configuration"]["name"] == "failing"
    ]
    assert ("Stopped", "InProgress") in changes


def test_a_rule_that_returns_in_a_lane_starts_again_there():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, OTHER)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    for rules in ((OTHER, EVERY_STEP), (OTHER,), (OTHER, EVERY_STEP)):
        ask_for(small, *rules)
        small.settle()
    small.pass_time(120)
    worker.save(1, FAILING)
    small.settle()
    small.pass_time(120)
    assert small.statuses() == {"failing": "IssuesFound", "other": "IssuesFound"}
    assert {step for _, step in found(small)} == {0, 1}


def test_a_lost_notification_of_changed_rules_is_found_by_the_sweeper():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, OTHER)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    for rules in ((OTHER, EVERY_STEP), (EVERY_STEP,)):
        ask_for(small, *rules)
        held_back(small)
        small.clock.time += 300
        assert small.sweep() == 1
        assert small.sweep() == 0
    small.pass_time(120)
    assert small.statuses() == {"failing": "IssuesFound", "other": "Stopped"}


def test_rules_that_the_sweeper_finds_are_newer_than_half_recorded_ones(monkeypatch):
    from functions.arrivals import rules_file

    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, OTHER)
    Saver(small.place()).begin().save(0, FAILING)
    small.settle()
    ask_for(small, EVERY_STEP)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(rules_file, "change", _dies)
        small.deliver()
    ask_for(small, OTHER, EVERY_STEP)
    held_back(small)
    small.clock.time += 300
    assert small.sweep() == 1
    small.pass_time(120)
    assert {configured.name for configured in small.index.rules(RUN).wanted} == {"failing", "other"}


def test_a_lane_whose_maker_died_does_not_keep_the_run_from_finishing():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    (rule,) = small.index.groups.get(RUN, "builtin").rules
    small.index.groups.begin_lane(RUN, GroupRecord("lane-failing", cursor=0, rules=(rule,)))
    worker.end()
    small.settle()
    small.pass_time(120)
    assert small.index.run(RUN).state.value == "Finished"


def test_later_notifications_replace_rules_that_the_sweeper_found():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, OTHER)
    Saver(small.place()).begin().save(0, FAILING)
    small.settle()
    ask_for(small, EVERY_STEP)
    held_back(small)
    small.clock.time += 300
    small.sweep()
    ask_for(small, OTHER, EVERY_STEP)
    small.settle()
    assert {configured.name for configured in small.index.rules(RUN).wanted} == {"failing", "other"}
    small.clock.time += 300
    assert small.sweep() == 0


@pytest.fixture
def defect(monkeypatch):
    """A defect in ExplodingTensor; call it to repair the rule."""

    def fail(rule, step):
        raise KeyError("fc")

    def begin():
        monkeypatch.setattr(ExplodingTensor, "judged", fail)

    begin.repair = monkeypatch.undo
    return begin


def test_a_damaged_step_is_left_out_and_reported_and_the_rule_continues():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    worker = Saver(small.place()).begin()
    worker.save(1, HEALTHY)
    (broken,) = small.place().list("events/")
    small.place().write(broken, small.place().read(broken)[:-20] + bytes(20))
    small.settle()
    assert small.statuses() == {"failing": "InProgress"}
    assert f"{broken} (step 1) is damaged" in small.index.run(RUN).trouble
    worker.save(2, FAILING)
    small.settle()
    assert found(small) == [(0, 2)]


def test_a_rule_that_failed_has_another_chance_when_the_training_is_resumed(defect):
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, EVERY_STEP)
    first = Saver(small.place()).begin()
    defect()
    first.save(1, HEALTHY)
    small.settle()
    assert small.statuses() == {"failing": "Error"}
    defect.repair()
    again = resumed(small)
    again.save(1, FAILING)
    small.settle()
    assert small.statuses() == {"failing": "IssuesFound"}
    assert found(small) == [(1, 1)]


def test_a_rule_that_failed_with_an_open_issue_has_it_still_when_the_training_is_resumed(defect):
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, {"name": "failing", "rule": "ExplodingTensor"})
    first = Saver(small.place()).begin()
    first.save(1, FAILING)
    small.settle()
    defect()
    first.save(2, HEALTHY)
    small.settle()
    assert small.statuses() == {"failing": "Error"}
    defect.repair()
    resumed(small).save(1, FAILING)
    small.settle()
    assert small.statuses() == {"failing": "IssuesFound"}


def test_a_redelivered_message_after_a_rule_change_starts_no_unknown_group():
    small = SmallWorld(NO_DEFAULTS)
    ask_for(small, OTHER)
    again = list(small.bucket.notifications)
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    ask_for(small, {"name": "own", "rule": "Own", "source": "s3://runs/rule-sources/own.py"})
    news = held_back(small)
    small.bucket.release(again)
    small.settle()
    assert [group.group for group in small.index.groups.all_of(RUN)] == ["builtin"]
    small.bucket.release(news)
    small.deliver()
    small.bucket.release(again)
    small.deliver()
    groups = [group.group for group in small.index.groups.all_of(RUN)]
    assert [name.partition("-")[0] for name in groups] == ["builtin", "custom"]
