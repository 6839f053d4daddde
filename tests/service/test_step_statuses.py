"""Which workers have written a step, and whether the rules have evaluated it."""

from __future__ import annotations

from datetime import UTC, datetime

from smdebug.service.records import RunState
from smdebug.service.step_status import StepState
from tests.service.stocked import BEGUN, LOSS, OWN, RUN, VANISHING, rule


def test_a_step_lists_its_missing_workers(stock):
    stock.begin(num_workers=3)
    stock.wrote(0, "worker_0", "worker_1", "worker_2")
    stock.wrote(10, "worker_0")
    stock.wrote(10, "worker_2", event_only=True)
    first, second = stock.run().steps()
    assert (first.step, first.state, first.missing) == (0, StepState.COMPLETE, ())
    assert first.workers == ("worker_0", "worker_1", "worker_2")
    assert (second.state, second.missing) == (StepState.INCOMPLETE, ("worker_1", "worker_2"))
    assert second.half_written == ("worker_2",)
    assert second.uploaded == datetime.fromtimestamp(BEGUN + 10, UTC)


def test_workers_named_after_devices_are_known_by_their_files(stock):
    stock.begin(num_workers=2)
    stock.wrote(0, "/device:GPU:0", "/device:GPU:1")
    stock.wrote(1, "/device:GPU:1")
    assert stock.run().steps()[1].missing == ("/device:GPU:0",)


def test_workers_are_sorted_by_number(stock):
    stock.begin(num_workers=200)
    stock.wrote(0, *(f"worker_{number}" for number in range(200) if number not in (9, 150)))
    (step,) = stock.run().steps()
    assert step.missing == ("worker_9", "worker_150")
    assert step.workers[:3] == ("worker_0", "worker_1", "worker_2")
    assert len(step.workers) == 198


def test_the_state_of_a_step_is_unknown_until_the_number_of_workers_is_known(stock):
    stock.begin(num_workers=None)
    stock.wrote(0)
    assert stock.run().steps()[0].state is StepState.UNKNOWN


def test_an_incomplete_step_is_given_up_once_the_rules_pass_it_or_the_run_ends(stock):
    stock.begin(num_workers=2)
    stock.wrote(1, "worker_0")
    stock.wrote(2, "worker_0", "worker_1")
    stock.wrote(3, "worker_0")
    stock.group(rule(VANISHING), cursor=2, passed=frozenset({1}))
    states = [step.state.value for step in stock.run().steps()]
    assert states == ["given up", "complete", "incomplete"]
    stock.become(RunState.ENDED)
    assert stock.run().steps()[2].state is StepState.GIVEN_UP


def test_a_step_is_evaluated_once_every_group_except_lanes_has_evaluated_it(stock):
    stock.begin(wanted=(VANISHING, OWN))
    for step in range(4):
        stock.wrote(step)
    stock.group(rule(VANISHING), cursor=3, passed=frozenset({0, 1}), late_done=frozenset({1}))
    stock.group(rule(OWN), group=f"custom-{OWN.id}", cursor=2)
    stock.group(rule(LOSS), group=f"lane-{LOSS.id}", cursor=0)
    assert [step.evaluated for step in stock.run().steps()] == [False, True, True, False]


def test_steps_of_the_old_library_name_the_groups_that_evaluated_them(stock):
    stock.begin(run_id=None)
    stock.wrote(0)
    stock.wrote(1)
    stock.group(rule(VANISHING), cursor=1)
    seen = stock.index.step(RUN, 0, 1)
    stock.index.describe_step(RUN, seen, mode="TRAIN", mode_step=5, layout="x", evaluated_by="builtin")
    first, second = stock.run().steps()
    assert (first.evaluated, second.evaluated) == (False, True)
    assert (second.mode, second.mode_step) == ("TRAIN", 5)


def test_steps_are_those_of_the_newest_attempt_in_the_range(stock):
    stock.begin(training_run=1)
    stock.wrote(0, training_run=0)
    for step in (0, 5, 10):
        stock.wrote(step, training_run=1)
    run = stock.run()
    assert [step.step for step in run.steps()] == [0, 5, 10]
    assert [step.step for step in run.steps(first=1, last=5)] == [5]
    assert {step.training_run for step in run.steps()} == {1}
