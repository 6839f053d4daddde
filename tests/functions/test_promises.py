"""What is promised of every run, whatever arrives in whatever order and however often."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.arrivals.recording import record_arrivals
from functions.decisions.messages import arrivals_in
from functions.evaluation.built_in import evaluate
from functions.ports import TooMuch
from functions.rule_groups import GroupBusy, LeaseLost
from smdebug.exceptions import StorageUnavailable
from smdebug.mode_keys import ModeKeys
from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.saver import ILL, WELL, Saver
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
EXPLODING = stack_settings(default_rules=("ExplodingTensor",))


def found_steps(small: SmallWorld) -> list[int]:
    return [one["step"] for one in small.details("Rule Evaluation Condition Met")]


def cursor(small: SmallWorld) -> int:
    return small.index.groups.get(RUN, "builtin").cursor


def summaries(small: SmallWorld) -> list[dict[str, Any]]:
    told = small.details("Run State Change")
    return [one["summary"] for one in told if one["summary"]]


def every_step_told(small: SmallWorld) -> None:
    """A rules.json that has each ill step published."""
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ill", "rule": "ExplodingTensor", "repeat": "every_step"}]}',
    )


# Complete


def test_a_step_is_evaluated_when_both_files_of_every_worker_are_there():
    small = SmallWorld(EXPLODING)
    first, second = (
        Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1")
    )
    first.save(0, ILL)
    small.settle()
    assert cursor(small) == -1
    second.save(0, WELL)
    small.settle()
    assert cursor(small) == 0
    assert found_steps(small) == [0]


def test_how_many_workers_there_are_may_be_told_after_the_first_steps():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place())
    worker.save(0, ILL)
    small.settle()
    assert found_steps(small) == []
    worker.begin()
    small.settle()
    assert found_steps(small) == [0]


def test_an_index_file_without_its_event_file_is_not_enough():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    told = small.bucket.notifications
    event_files = [one for one in told if "events" in one]
    small.bucket.notifications = [one for one in told if "events" not in one]
    small.settle()
    assert found_steps(small) == []
    small.bucket.notifications = event_files
    small.settle()
    assert found_steps(small) == [0]


@pytest.mark.parametrize("workers", [1, 3, 120])
def test_any_number_of_workers_makes_a_step(workers):
    small = SmallWorld(EXPLODING)
    savers = [
        Saver(small.place(), f"worker_{n}", num_workers=workers).begin() for n in range(workers)
    ]
    for saver in savers[:-1]:
        saver.save(0, WELL)
    small.settle()
    assert cursor(small) == -1
    savers[-1].save(0, ILL)
    small.settle()
    assert found_steps(small) == [0]


def test_a_device_is_a_worker_too():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place(), "/job:worker/replica:0/task:0/device:GPU:0").begin()
    worker.save(0, ILL)
    small.settle()
    (found,) = small.details("Rule Evaluation Condition Met")
    assert found["evidence"]["worst"][0]["worker"] == "/job:worker/replica:0/task:0/device:GPU:0"


# Any order, any repetition


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 7))
def test_any_order_of_arrival_gives_every_step_its_turn_in_order(
    chance: random.Random, workers, batch
):
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    savers = [
        Saver(small.place(), f"worker_{n}", num_workers=workers).begin() for n in range(workers)
    ]
    ill = sorted(chance.sample(range(8), 4))
    for step in range(8):
        for saver in savers:
            saver.save(step, ILL if step in ill else WELL)
    small.bucket.notifications += chance.sample(small.bucket.notifications, 10)  # some come twice

    def shuffled(told: list[str]) -> list[str]:
        chance.shuffle(told)
        return told

    while small.bucket.notifications:
        told, small.bucket.notifications = shuffled(small.bucket.notifications), []
        some = chance.randint(1, len(told))
        small.bucket.notifications = told[:some]
        small.deliver(batch=batch)
        if chance.random() < 0.5:
            small.execute()
        small.bucket.notifications += told[some:]
    small.execute()
    assert found_steps(small) == ill
    assert cursor(small) == 7


def test_what_is_told_twice_is_evaluated_once():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    told = list(small.bucket.notifications)
    small.settle()
    small.bucket.notifications = told
    small.settle()
    assert found_steps(small) == [0]


# Order


def test_a_later_step_waits_for_the_one_its_worker_saved_before():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, ILL)
    late, small.bucket.notifications = small.bucket.notifications, []
    worker.save(10, ILL)
    small.settle()
    assert found_steps(small) == []
    small.bucket.notifications = late
    small.settle()
    assert found_steps(small) == [0, 10]


def test_it_waits_so_long_and_no_longer_and_a_late_step_says_that_it_is_late():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, ILL)
    late, small.bucket.notifications = small.bucket.notifications, []
    worker.save(10, ILL)
    small.settle()
    small.pass_time(1000)
    assert found_steps(small) == [10]
    small.bucket.notifications = late
    small.settle()
    told = small.details("Rule Evaluation Condition Met")
    assert [(one["step"], one["late"]) for one in told] == [(10, False), (0, True)]
    small.bucket.notifications = late
    small.settle()
    assert found_steps(small) == [10, 0]


def test_a_late_step_is_evaluated_with_the_next_one_if_whoever_was_told_of_it_has_died():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, ILL)
    late, small.bucket.notifications = small.bucket.notifications, []
    worker.save(10, ILL)
    small.settle()
    small.pass_time(1000)
    small.bucket.notifications = late
    small.deliver()
    small.workflow.started.clear()
    worker.save(20)
    small.settle()
    assert found_steps(small) == [10, 0]


def test_a_step_that_a_worker_skipped_holds_nobody_up():
    small = SmallWorld(EXPLODING)
    first, second = (
        Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1")
    )
    for step in (0, 5, 10):
        first.save(step, WELL)
    for step in (0, 10):
        second.save(step, ILL if step == 10 else WELL)
    small.settle()
    assert found_steps(small) == [10]
    assert small.index.groups.get(RUN, "builtin").passed == {5}


def test_runs_of_the_old_library_are_evaluated_as_their_steps_become_complete():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place(), run_id=None).begin()
    small.settle()
    worker.save(0, ILL)
    late, small.bucket.notifications = small.bucket.notifications, []
    worker.save(10, ILL)
    small.settle()
    assert found_steps(small) == [10]
    small.bucket.notifications = late * 2
    small.settle()
    small.bucket.notifications = late
    small.settle()
    told = small.details("Rule Evaluation Condition Met")
    assert [(one["step"], one["late"]) for one in told] == [(10, False), (0, True)]


# Leases


def test_while_one_evaluates_another_is_turned_away_and_nothing_is_lost():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    small.index.groups.lease(RUN, "builtin", now=small.clock.now(), seconds=130)
    with pytest.raises(GroupBusy):
        evaluate(small.world, RUN, "builtin", 0)
    small.execute()  # gives up: the lease is held
    assert found_steps(small) == []
    small.pass_time(400)  # its holder is dead: the check finds out
    assert found_steps(small) == [0]


def test_a_group_that_is_no_more_has_nothing_to_say():
    small = SmallWorld(EXPLODING)
    Saver(small.place()).begin()
    small.settle()
    assert evaluate(small.world, RUN, "lane-gone", 0)["outbox"] == []


def test_a_large_memory_is_kept_in_an_object_of_its_own(monkeypatch):
    monkeypatch.setattr("functions.evaluation.rule_bench.LARGEST_INLINE_STATE", 10)
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "loss", "rule": "LossNotDecreasing",'
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


def test_what_is_known_of_a_run_is_forgotten_long_after_its_last_change():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.settle()
    small.clock.time += 1000
    worker.save(1, WELL)
    small.settle()
    now = small.clock.now()
    expiry = {item["sk"]: item["expires"] - now for item in small.items.query(f"RUN#{RUN}")}
    assert all(90 * 86_400 - 1001 <= left <= 90 * 86_400 for left in expiry.values())
    assert expiry["GROUP#builtin"] == 90 * 86_400


def test_who_lost_the_lease_commits_nothing():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    held = small.index.groups.lease(RUN, "builtin", now=small.clock.now(), seconds=130)
    small.clock.time += 131
    small.execute()
    assert cursor(small) == 0
    with pytest.raises(LeaseLost):
        small.index.groups.commit(RUN, held, {})
    assert cursor(small) == 0


def test_what_was_not_published_is_published_by_the_next_evaluation():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    evaluate(small.world, RUN, "builtin", 0)  # and then the workflow dies
    small.workflow.started.clear()
    assert found_steps(small) == []
    small.pass_time(400)
    assert found_steps(small) == [0]
    assert small.index.groups.get(RUN, "builtin").outbox == {}


def test_a_start_that_got_lost_is_made_up_for_by_the_check():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    small.workflow.started.clear()
    small.pass_time(400)
    assert found_steps(small) == [0]


def test_at_most_one_check_waits_for_a_run():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    for step in range(20):
        worker.save(step)
        small.settle()
    assert len(small.checks.waiting) == 1


def test_what_there_is_to_tell_at_once_does_not_wait_for_the_check_that_is_due_later():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    evaluate(small.world, RUN, "builtin", 0)
    small.workflow.started.clear()
    small.checks.leave({"check": RUN}, after_seconds=1)
    small.pass_time(2)
    assert found_steps(small) == []
    small.checks.leave({"check": RUN, "at_once": True}, after_seconds=1)
    small.pass_time(2)
    assert found_steps(small) == [0]
    assert len(small.checks.waiting) == 1


def test_a_notification_that_got_lost_is_found_by_the_sweeper():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, ILL)
    small.bucket.notifications.clear()
    small.clock.time += 300
    assert small.sweep() == 2
    assert found_steps(small) == [0]
    assert small.sweep() == 0


def test_a_backlog_is_worked_off_in_parts_with_the_same_result():
    small = SmallWorld(stack_settings(default_rules=("ExplodingTensor",), longest_backlog=7))
    every_step_told(small)
    worker = Saver(small.place()).begin()
    for step in range(30):
        worker.save(step, ILL if step % 10 == 3 else WELL)
    small.settle()
    assert found_steps(small) == [3, 13, 23]
    assert cursor(small) == 29


# Issues


def test_an_issue_opens_once_and_is_resolved_once():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    for step, tensors in enumerate([WELL, ILL, ILL, WELL, WELL, ILL]):
        worker.save(step, tensors)
        small.settle()
    assert found_steps(small) == [1, 5]
    (resolved,) = small.details("Rule Issue Resolved")
    assert resolved["step"] == 3
    assert resolved["issue"]["since"] == 1


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
        b'{"version": 1, "rules": [{"name": "loss", "rule": "LossNotDecreasing",'
        b' "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(place).begin()
    for step, loss in enumerate([5.0, 4.0, 3.0, 3.0, 3.0, 3.0]):
        worker.save(step, {"loss": loss})
        small.settle()
    assert found_steps(small) == [4]
    assert small.index.groups.get(RUN, "builtin").rules[0].state


# Things that go wrong


def test_a_rule_that_cannot_be_made_is_an_error_and_the_others_go_on():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": ['
        b'{"name": "odd", "rule": "VanishingGradient", "parameters": {"threshold": "much"}},'
        b'{"name": "unknown", "rule": "VanishingGradeint"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.settle()
    assert small.statuses() == {"odd": "Error", "unknown": "Error", "good": "IssuesFound"}
    reasons = {rule.name: rule.reason for rule in small.index.groups.get(RUN, "builtin").rules}
    assert "threshold" in reasons["odd"]
    assert "VanishingGradient" in reasons["unknown"]
    assert found_steps(small) == [0]


def test_a_rules_file_that_cannot_be_read_is_told_and_the_default_rules_watch():
    small = SmallWorld(EXPLODING)
    small.place().write("rules.json", b'{"version": 1, "rules": [')
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.settle()
    assert found_steps(small) == [0]
    troubles = {one["trouble"] for one in small.details("Run State Change")}
    assert any("rules.json" in trouble for trouble in troubles)


def test_a_rule_that_cannot_be_read_takes_no_other_with_it():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "a/b", "rule": "VanishingGradient"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    Saver(small.place()).begin().save(0, ILL)
    small.settle()
    assert small.statuses() == {"good": "IssuesFound"}
    troubles = [one["trouble"] for one in small.details("Run State Change")]
    assert any("a/b" in trouble for trouble in troubles)


def test_an_older_rules_file_that_is_told_later_changes_nothing():
    small = SmallWorld()
    place = small.place()
    place.write("rules.json", b'{"version": 1, "rules": [{"name": "a", "rule": "AllZero"}]}')
    older, small.bucket.notifications = small.bucket.notifications, []
    place.write(
        "rules.json", b'{"version": 1, "rules": [{"name": "b", "rule": "ExplodingTensor"}]}'
    )
    small.settle()
    place.write("rules.json", b'{"version": 1, "rules": [{"name": "a", "rule": "AllZero"}]}')
    small.bucket.notifications = older
    small.settle()
    Saver(place).begin().save(0, WELL)
    small.settle()
    assert set(small.statuses()) == {"b"}


def test_a_worker_that_never_comes_is_told_while_the_run_goes_on_and_once():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place(), num_workers=2).begin()
    for step in range(30):
        worker.save(step, ILL)
        small.settle()
        small.pass_time(120)
    run = small.index.run(RUN)
    assert "Step 0 was saved by 1 of 2 workers" in run.trouble
    assert "worker_1 is missing" in run.trouble
    troubles = [one["trouble"] for one in small.details("Run State Change") if one["trouble"]]
    assert troubles == [run.trouble]
    worker.end()
    small.settle()
    small.pass_time(120)
    (summary,) = summaries(small)
    assert (summary["steps"], summary["not_evaluated"]) == (0, 30)
    assert small.index.run(RUN).state.value == "Finished"


def test_a_collections_file_that_never_comes_is_told():
    small = SmallWorld(EXPLODING)
    Saver(small.place()).save(0, ILL)
    small.settle()
    small.pass_time(1300)
    troubles = [one["trouble"] for one in small.details("Run State Change") if one["trouble"]]
    assert len(troubles) == 1
    assert "no collections file has come" in troubles[0]


def test_a_rule_that_is_changed_while_the_run_goes_on_is_stopped_and_begins_anew():
    small = SmallWorld()

    def want(threshold: str) -> None:
        told = {"name": "tiny", "rule": "VanishingGradient", "parameters": {"threshold": threshold}}
        small.place().write("rules.json", json.dumps({"version": 1, "rules": [told]}).encode())
        small.settle()
        small.pass_time(10)

    worker = Saver(small.place()).begin()
    want("1e-12")
    worker.save(0, {"gradient/fc": 1e-9})
    small.settle()
    want("1e-3")
    changes = [
        (one["configuration"]["parameters"]["threshold"], one["status"])
        for one in small.details("Rule Evaluation Status Change")
    ]
    assert ("1e-12", "Stopped") in changes
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["catch_up"]) == (0, True)
    assert found["configuration"]["parameters"] == {"threshold": "1e-3"}


def test_a_later_rules_file_that_makes_no_sense_is_told_and_those_that_watch_go_on():
    small = SmallWorld()
    every_step_told(small)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.settle()
    small.place().write("rules.json", b'{"rules": ')
    small.settle()
    worker.save(1, ILL)
    small.settle()
    assert found_steps(small) == [0, 1]
    assert "it is not JSON" in small.index.run(RUN).trouble
    troubles = [one["trouble"] for one in small.details("Run State Change") if one["trouble"]]
    assert troubles == [small.index.run(RUN).trouble]


def test_what_was_wrong_with_a_run_is_not_told_of_it_when_it_has_been_put_right():
    small = SmallWorld(EXPLODING)
    small.place().write("rules.json", b'{"rules": ')
    first = Saver(small.place(), num_workers=2).begin()
    first.save(0, WELL)
    small.settle()
    small.pass_time(1300)
    wrong = small.index.run(RUN).trouble
    assert "it is not JSON" in wrong
    assert "worker_1 is missing" in wrong
    small.place().write("rules.json", b'{"version": 1, "rules": []}')
    Saver(small.place(), "worker_1", num_workers=2).save(0, WELL)
    small.settle()
    small.pass_time(1300)
    assert small.index.run(RUN).trouble == ""


def test_a_place_that_another_training_uses_after_the_first_has_ended_is_a_new_attempt():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    first = Saver(small.place()).begin()
    first.save(0, ILL)
    first.end()
    small.settle()
    small.pass_time(120)
    second = Saver(small.place(), run_id="run-2").begin()
    second.save(0, ILL)
    small.settle()
    told = small.details("Rule Evaluation Condition Met")
    assert [(one["run_id"], one["training_run"], one["step"]) for one in told] == [
        ("run-1", 0, 0),
        ("run-2", 1, 0),
    ]
    run = small.index.run(RUN)
    assert (run.state.value, run.run_id, run.trouble) == ("Running", "run-2", "")


def test_a_damaged_index_file_is_told_and_the_next_steps_are_evaluated():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    index = next(key for key in small.place().list("index/"))
    small.place().write(index, b'{"meta": {"mode": "TRAIN"')
    worker.save(1, ILL)
    small.settle()
    assert found_steps(small) == [1]
    troubles = [one["trouble"] for one in small.details("Run State Change") if one["trouble"]]
    assert any("Step 0" in trouble for trouble in troubles)


def test_a_function_that_dies_at_a_rule_makes_that_rule_an_error_and_no_other():
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "deadly", "rule": "VanishingGradient"},'
        b'{"name": "good", "rule": "ExplodingTensor"}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    small.deliver()
    small.workflow.started.clear()

    class Death(BaseException):
        """The process is gone."""

    from smdebug_rules.vanishing_gradient import VanishingGradient

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


# Attempts


def test_a_resumed_training_has_its_steps_evaluated_anew():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    for step in range(4):
        worker.save(step, ILL if step == 2 else WELL)
    small.settle()
    again = Saver(small.place(), training_run=1).begin()
    for step in (2, 3, 4):
        small.clock.time += 1
        again.save(step, ILL if step == 4 else WELL)
    small.settle()
    told = small.details("Rule Evaluation Condition Met")
    assert [(one["training_run"], one["step"]) for one in told] == [(0, 2), (1, 4)]


def test_steps_of_a_resumed_training_that_arrive_before_its_collections_are_not_lost():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place()).begin()
    for step in range(4):
        worker.save(step, WELL)
    small.settle()
    small.clock.time += 10
    again = Saver(small.place(), training_run=1).begin()
    collections, small.bucket.notifications = small.bucket.notifications, []
    again.save(2, ILL)
    small.settle()
    small.bucket.notifications = collections
    small.settle()
    told = small.details("Rule Evaluation Condition Met")
    assert [(one["training_run"], one["step"]) for one in told] == [(1, 2)]


def test_another_training_that_writes_to_the_same_place_is_told():
    small = SmallWorld(EXPLODING)
    Saver(small.place()).begin().save(0, WELL)
    small.settle()
    Saver(small.place(), run_id="run-2").begin()
    small.settle()
    troubles = [one["trouble"] for one in small.details("Run State Change")]
    assert any("run-2" in trouble for trouble in troubles)


# Ends


def test_the_end_settles_what_is_missing_and_finishes_the_rules():
    small = SmallWorld(EXPLODING)
    first, second = (
        Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1")
    )
    for step in (0, 10):
        first.save(step, WELL)
        second.save(step, ILL)
    lost = [one for one in small.bucket.notifications if "000000000000_worker_1" in one]
    small.bucket.notifications = [one for one in small.bucket.notifications if one not in lost]
    small.place().delete("events/000000000000/000000000000_worker_1.tfevents")
    small.place().delete("index/000000000/000000000000_worker_1.json")
    first.end()
    small.settle()
    assert found_steps(small) == []
    small.pass_time(120)
    assert found_steps(small) == [10]
    assert small.index.run(RUN).state.value == "Finished"


def test_a_run_that_falls_silent_is_told_and_at_last_ended():
    small = SmallWorld(EXPLODING)
    Saver(small.place()).begin().save(0, WELL)
    small.settle()
    small.pass_time(2000)
    states = [one["state"] for one in small.details("Run State Change")]
    assert states == ["Running", "Silent"]
    small.pass_time(7 * 3600)
    states = [one["state"] for one in small.details("Run State Change")]
    assert states == ["Running", "Silent", "Finished"]


def test_a_silent_run_that_goes_on_is_running_again():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    small.settle()
    small.pass_time(2000)
    worker.save(1, ILL)
    small.settle()
    states = [one["state"] for one in small.details("Run State Change")]
    assert states == ["Running", "Silent", "Running"]
    assert found_steps(small) == [1]


def test_a_step_after_the_end_is_evaluated_and_the_run_ends_again():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    worker.end()
    small.settle()
    small.pass_time(120)
    assert small.index.run(RUN).state.value == "Finished"
    worker.save(1, ILL)
    small.settle()
    assert found_steps(small) == [1]
    small.pass_time(400)
    assert small.index.run(RUN).state.value == "Finished"
    assert small.statuses() == {"ExplodingTensor": "IssuesFound"}


def test_a_late_step_after_the_end_is_evaluated_and_the_summary_is_told_again():
    small = SmallWorld(EXPLODING)
    first, second = (
        Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1")
    )
    for step in (0, 10):
        first.save(step, WELL)
        second.save(step, ILL if step == 0 else WELL)
    late = [one for one in small.bucket.notifications if "000000000000_worker_1" in one]
    small.bucket.notifications = [one for one in small.bucket.notifications if one not in late]
    kept = [key for key in small.place().list("") if "000000000000_worker_1" in key]
    files = {key: small.place().read(key) for key in kept}
    for key in kept:
        small.place().delete(key)
    first.end()
    small.settle()
    small.pass_time(120)
    (finished,) = summaries(small)
    assert (finished["steps"], finished["not_evaluated"]) == (1, 1)
    assert finished["statuses"] == {"NoIssuesFound": 1}

    for key, data in files.items():
        small.place().write(key, data)
    small.settle()
    small.pass_time(400)
    assert found_steps(small) == [0]
    _, again = summaries(small)
    assert (again["steps"], again["not_evaluated"]) == (2, 0)
    assert again["statuses"] == {"IssuesFound": 1}
    assert small.index.run(RUN).state.value == "Finished"
    small.bucket.notifications = late
    small.settle()
    small.pass_time(400)
    assert len(summaries(small)) == 2, "nothing has changed since"


def test_a_rule_attached_to_a_finished_run_is_in_its_next_summary():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, {"gradient/fc": 1e-9})
    worker.end()
    small.settle()
    small.pass_time(120)
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.settle()
    small.pass_time(400)
    before, after = summaries(small)
    assert before["statuses"] == {"NoIssuesFound": 1}
    assert after["statuses"] == {"NoIssuesFound": 1, "IssuesFound": 1}


def ended_with_a_broken_group() -> SmallWorld:
    small = SmallWorld(
        stack_settings(
            default_rules=("ExplodingTensor",), custom_functions={"Mine": "function-of-mine"}
        )
    )
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ill", "rule": "ExplodingTensor"},'
        b'{"name": "mine", "rule": "Mine"}]}',
    )
    worker = Saver(small.place()).begin()
    small.deliver()
    small.broken = {group for group in small.index.run(RUN).groups if group != "builtin"}
    for step in range(3):
        worker.save(step, ILL)
        small.settle()
    worker.end()
    small.settle()
    return small


def test_a_group_that_can_never_finish_is_an_error_after_so_many_checks_and_the_run_is_finished(
    capsys,
):
    small = ended_with_a_broken_group()
    small.pass_time(3600)
    assert small.index.run(RUN).state.value == "Ended"
    small.pass_time(3 * 3600)
    assert small.index.run(RUN).state.value == "Finished"
    assert small.statuses() == {"ill": "IssuesFound", "mine": "Error"}
    (mine,) = (
        rule
        for group in small.index.groups.all_of(RUN)
        for rule in group.rules
        if rule.name == "mine"
    )
    assert (
        "24 checks after the run had ended, the rule had still not evaluated all of its steps"
        in mine.reason
    )
    assert any(
        one["configuration"]["name"] == "mine" and one["status"] == "Error"
        for one in small.details("Rule Evaluation Status Change")
    )
    (summary,) = summaries(small)
    assert summary["statuses"] == {"IssuesFound": 1, "Error": 1}
    assert '"RuleErrors":[1.0]' in capsys.readouterr().out, "there is an alarm on that"
    assert small.checks.waiting == []


def test_a_rule_that_comes_after_others_were_given_up_has_its_own_chance():
    small = ended_with_a_broken_group()
    small.pass_time(4 * 3600)
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ill", "rule": "ExplodingTensor"},'
        b'{"name": "mine", "rule": "Mine"}, {"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.broken.clear()
    small.settle()
    small.pass_time(700)
    assert small.statuses() == {"ill": "IssuesFound", "mine": "Error", "tiny": "NoIssuesFound"}
    assert small.index.run(RUN).state.value == "Finished"
    assert len(summaries(small)) == 2


def test_what_cannot_be_published_is_not_tried_for_ever(monkeypatch):
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, ILL)
    worker.end()
    monkeypatch.setattr(small.index, "mark_published", lambda *told, **more: None)
    monkeypatch.setattr(SmallWorld, "_until_done", lambda self, ask: ask())
    small.settle()
    small.pass_time(12 * 3600)
    assert small.checks.waiting == []
    assert small.index.groups.get(RUN, "builtin").outbox, "the next evaluation publishes it"


def test_executions_that_fail_leave_no_more_checks_than_there_were():
    small = ended_with_a_broken_group()
    waiting = []
    for _ in range(40):
        small.pass_time(60)
        waiting.append(len(small.checks.waiting))
    assert max(waiting) == waiting[0] <= 3
    assert max(waiting[1:]) <= 2


def ahead_of_the_run_it_is_compared_with() -> tuple[SmallWorld, Saver, Saver]:
    """A stack, a run with two steps, and the other one that has only saved the first."""
    small = SmallWorld()
    other = Saver(small.place("before")).begin()
    other.save(0, {"w": 1.0})
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ill", "rule": "ExplodingTensor"},'
        b'{"name": "same", "rule": "SimilarAcrossRuns", "other_trials": ["s3://runs/before"]}]}',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, {"w": 1.0})
    worker.save(1, {"w": 2.0})
    return small, worker, other


def test_a_run_that_waits_for_one_that_goes_on_is_not_given_up():
    small, worker, other = ahead_of_the_run_it_is_compared_with()
    worker.end()
    small.settle()
    small.pass_time(5 * 3600)
    assert small.index.run(RUN).state.value == "Ended"
    other.save(1, {"w": 1.0})
    small.settle()
    small.pass_time(700)
    assert found_steps(small) == [1]
    assert small.index.run(RUN).state.value == "Finished"


def test_a_run_that_was_resumed_after_its_end_is_looked_after_again():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    worker.end()
    small.settle()
    small.pass_time(120)
    small.sweep()
    assert small.index.watched_runs() == []
    Saver(small.place(), training_run=1).begin()
    small.settle()
    assert [one.run for one in small.index.watched_runs()] == [RUN]
    assert small.index.run(RUN).state.value == "Running"
    assert RUN in small.schedules.at


def test_a_run_that_is_being_noted_or_listed_again_is_not_unlisted_meanwhile():
    small = SmallWorld(EXPLODING)
    small.index.list_run(RUN, small.clock.now())  # the first that happens to a new run
    small.sweep()
    (watched,) = small.index.watched_runs()
    small.index.list_run(RUN, small.clock.now())
    assert not small.index.unlist_run(watched)
    assert [one.run for one in small.index.watched_runs()] == [RUN]
    small.clock.time += 2 * 86_400  # whoever was noting it has died
    small.sweep()
    assert small.index.watched_runs() == []


def test_what_cannot_be_read_for_a_moment_is_not_taken_as_unreadable():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    (told,), small.bucket.notifications = small.bucket.notifications, []
    read, small.bucket.read = small.bucket.read, unavailable
    with pytest.raises(StorageUnavailable):
        record_arrivals(small.world, RUN, arrivals_in(told))
    small.bucket.read = read
    small.bucket.notifications = [told]
    worker.save(0, ILL)
    small.settle()
    assert found_steps(small) == [0]


def collections_that_come_last() -> tuple[SmallWorld, str]:
    """A stack whose run has saved an ill step and ended, and what S3 tells of its collections file."""
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    (told,), small.bucket.notifications = small.bucket.notifications, []
    worker.save(0, ILL)
    worker.end()
    small.settle()
    small.pass_time(1300)
    return small, told


def cannot_start(small: SmallWorld, told: str) -> None:
    """Take in what was told by a process that dies before it starts what follows."""
    start, small.workflow.start = small.workflow.start, dies
    with pytest.raises(TooMuch):
        record_arrivals(small.world, RUN, arrivals_in(told))
    small.workflow.start = start


def test_collections_that_were_noted_by_somebody_who_died_start_what_is_complete_when_told_again():
    small, told = collections_that_come_last()
    cannot_start(small, told)
    small.bucket.notifications = [told]
    small.settle()
    assert found_steps(small) == [0]


def test_collections_that_were_noted_by_somebody_who_died_are_followed_by_a_check():
    small, told = collections_that_come_last()
    cannot_start(small, told)
    small.pass_time(400)
    assert found_steps(small) == [0]


def unavailable(*_: object) -> bytes:
    raise StorageUnavailable("s3://runs/mnist", "not now")


def test_a_late_step_of_the_old_library_that_only_the_last_listing_shows_is_evaluated():
    small = SmallWorld(EXPLODING)
    every_step_told(small)
    worker = Saver(small.place(), run_id=None).begin()
    worker.save(0, WELL)
    small.settle()
    worker.save(1, ILL)
    small.bucket.notifications.clear()  # lost
    worker.save(2, WELL)
    small.settle()
    assert (cursor(small), found_steps(small)) == (2, [])
    worker.end()
    small.settle()
    small.pass_time(120)
    assert found_steps(small) == [1]
    assert small.statuses() == {"ill": "IssuesFound"}


def test_a_run_is_finished_also_if_whoever_noted_its_end_died_before_starting_anything():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    worker.end()
    small.settle()
    small.checks.waiting = [one for one in small.checks.waiting if "finish" in one[1]]
    told = list(small.checks.waiting)
    start, small.workflow.start = small.workflow.start, dies
    with pytest.raises(TooMuch):
        small.pass_time(120)
    small.workflow.start = start
    small.checks.waiting = told  # the message is seen again
    small.pass_time(120)
    assert small.index.run(RUN).state.value == "Finished"


def dies(*_: object) -> None:
    raise TooMuch("the function was killed")


def test_a_table_that_asks_to_slow_down_is_no_fault_of_the_rule():
    small = SmallWorld(stack_settings(default_rules=("UnchangedTensor",)))
    small.place().write(
        "rules.json",
        b'[{"RuleConfigurationName": "same", "RuleParameters": {"rule_to_invoke": "UnchangedTensor",'
        b' "tensor_regex": "gradient", "num_steps": "2"}}]',
    )
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    small.settle()
    small.world.kept_views.clear()  # another process looks at the next step, and has to look back
    worker.save(1, WELL)
    small.deliver()
    (told,) = small.workflow.started.values()
    query = small.items.query

    def busy(pk: str, **how: Any) -> Any:
        if how.get("newest_first"):
            raise TooMuch("slow down")
        return query(pk, **how)

    small.items.query = busy  # type: ignore[method-assign]
    with pytest.raises(TooMuch):
        evaluate(small.world, RUN, "builtin", told["step"])
    small.items.query = query  # type: ignore[method-assign]
    small.clock.time += 200
    small.settle()
    assert small.statuses() == {"same": "IssuesFound"}


def test_a_sagemaker_job_ends_by_its_own_event():
    from functions.decisions.messages import JobEnded
    from functions.lifecycle.ending import job_ended

    small = SmallWorld(EXPLODING)
    place = small.place("jobs/mnist-1/debug-output")
    Saver(place).begin().save(0, WELL)
    small.settle()
    job_ended(small.world, JobEnded("mnist-1", "Completed"))
    small.pass_time(120)
    assert small.index.run("runs/jobs/mnist-1/debug-output").state.value == "Finished"


# Rules come and go


def test_a_rule_attached_to_a_live_run_catches_up_and_acts_on_nothing_old():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    for step in range(3):
        worker.save(step, {"gradient/fc": 1e-9})
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient", "actions": [{"name": "StopTraining"}]}]}',
    )
    small.settle()
    small.pass_time(10)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["rule"], found["step"], found["catch_up"]) == ("VanishingGradient", 0, True)
    assert found["actions"] == []
    worker.save(3, {"gradient/fc": 1e-9})
    small.settle()
    live = small.details("Rule Evaluation Condition Met")[-1]
    assert (live["step"], live["catch_up"]) == (3, False)
    assert live["actions"]


def test_a_rule_that_has_caught_up_joins_the_others():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    for step in range(3):
        worker.save(step, WELL)
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.settle()
    small.pass_time(10)
    (group,) = small.index.groups.all_of(RUN)
    assert [rule.name for rule in group.rules] == ["ExplodingTensor", "tiny"]
    assert small.index.run(RUN).groups == ("builtin",)
    worker.save(3, {"gradient/fc": 1e-9})
    small.settle()
    assert small.statuses() == {"ExplodingTensor": "InProgress", "tiny": "IssuesFound"}


def test_a_lane_that_is_always_done_before_the_others_joins_them_all_the_same():
    small = SmallWorld(EXPLODING)
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.deliver()
    small.workflow.started.clear()
    evaluate(small.world, RUN, "builtin", 0)
    lane = small.index.run(RUN).groups[-1]
    for step in (1, 2):
        worker.save(step, WELL)
        small.deliver()
        small.workflow.started.clear()
        for group in (lane, "builtin"):
            told = evaluate(small.world, RUN, group, step)["mark"]
            if told["ids"]:
                small.index.mark_published(**told)
    assert small.index.run(RUN).groups == ("builtin",)
    (group,) = small.index.groups.all_of(RUN)
    assert ([rule.name for rule in group.rules], group.cursor) == (["ExplodingTensor", "tiny"], 2)


def test_a_rule_that_is_detached_is_stopped_and_looks_no_more():
    small = SmallWorld()
    worker = Saver(small.place()).begin()
    worker.save(0, WELL)
    small.settle()
    small.place().write("rules.json", b'{"version": 1, "rules": []}')
    small.settle()
    worker.save(1, ILL)
    small.settle()
    assert set(small.statuses().values()) == {"Stopped"}
    assert found_steps(small) == []


def test_two_runs_do_not_touch():
    small = SmallWorld(EXPLODING)
    one, other = Saver(small.place("a")).begin(), Saver(small.place("b")).begin()
    one.save(0, ILL)
    other.save(0, WELL)
    small.settle()
    assert small.statuses("runs/a") == {"ExplodingTensor": "IssuesFound"}
    assert small.statuses("runs/b") == {"ExplodingTensor": "InProgress"}


def test_a_rule_that_compares_two_runs_waits_for_the_other_and_holds_nobody_up():
    small, _, other = ahead_of_the_run_it_is_compared_with()
    small.settle()
    assert cursor(small) == 1
    assert found_steps(small) == []
    other.save(1, {"w": 1.0})
    small.settle()
    small.pass_time(400)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["rule"], found["step"]) == ("SimilarAcrossRuns", 1)


def test_arrivals_of_nothing_known_do_no_harm():
    small = SmallWorld()
    record_arrivals(small.world, RUN, [])
    assert small.index.run(RUN) is not None
