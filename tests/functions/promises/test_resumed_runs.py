"""A resumed training is evaluated from its checkpoint on."""

from __future__ import annotations

import pytest

from functions.evaluation.leased_group import LeasedGroup
from functions.evaluation.run_history import IndexedHistory
from functions.evaluation.shown_listing import ShownListing, attempts_of
from smdebug.files.names import END_MARKER
from smdebug.runs.opening import IMPATIENT
from smdebug.service.records import GroupRecord
from smdebug.trials import Trial
from tests.functions.promises.runs import RUN, report_every_step
from tests.functions.saver import FAILING, HEALTHY, Saver


def test_a_resumed_training_has_its_steps_evaluated_again(small):
    report_every_step(small)
    worker = Saver(small.place()).begin()
    for step in range(4):
        worker.save(step, FAILING if step == 2 else HEALTHY)
    small.settle()
    again = Saver(small.place(), training_run=1).begin()
    for step in (2, 3, 4):
        small.clock.time += 1
        again.save(step, FAILING if step == 4 else HEALTHY)
    small.settle()
    found = small.details("Rule Evaluation Condition Met")
    assert [(detail["training_run"], detail["step"]) for detail in found] == [(0, 2), (1, 4)]


def test_steps_of_a_resumed_training_that_arrive_before_its_collections_are_not_lost(small):
    report_every_step(small)
    worker = Saver(small.place()).begin()
    for step in range(4):
        worker.save(step, HEALTHY)
    small.settle()
    small.clock.time += 10
    again = Saver(small.place(), training_run=1).begin()
    collections = small.bucket.hold_back()
    again.save(2, FAILING)
    small.settle()
    small.bucket.release(collections)
    small.settle()
    small.pass_time(2)  # they are listed
    found = small.details("Rule Evaluation Condition Met")
    assert [(detail["training_run"], detail["step"]) for detail in found] == [(1, 2)]


def test_another_training_at_the_same_place_is_reported(small):
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    Saver(small.place(), run_id="run-2").begin()
    small.settle()
    troubles = [detail["trouble"] for detail in small.details("Run State Change")]
    assert any("run-2" in trouble for trouble in troubles)


def test_two_attempts_that_save_at_once_are_reported_once(small):
    """The second training mistook the run of the first for an interrupted one."""
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    small.clock.time += 10
    second = Saver(small.place(), training_run=1).begin()
    second.save(0, HEALTHY)
    small.settle()
    assert "Two trainings" not in small.index.run(RUN).trouble
    for step in (1, 2):
        small.clock.time += 10
        second.save(step, HEALTHY)
        first.save(step, HEALTHY)
        small.settle()
    troubles = [detail["trouble"] or "" for detail in small.details("Run State Change")]
    (trouble,) = [trouble for trouble in troubles if "Two trainings" in trouble]
    assert "s3://runs/mnist at once: attempt 0 has saved a step after attempt 1 had begun" in trouble


def test_a_training_that_was_killed_and_resumed_is_not_taken_for_two(small):
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    first.save(1, HEALTHY)
    late = small.bucket.hold_back()  # it was saved before the kill
    small.clock.time += 10
    second = Saver(small.place(), training_run=1).begin()
    small.settle()
    small.bucket.release(late)
    small.clock.time += 10
    for step in (1, 2):
        second.save(step, HEALTHY)
        small.settle()
    assert small.index.run(RUN).trouble == ""


def test_a_resume_during_an_evaluation_leaves_its_events_to_the_attempt_it_began_with(small):
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    record = small.index.run(RUN)
    leased = LeasedGroup(small.world, record, GroupRecord("builtin"), begun=small.clock.time)
    Saver(small.place(), training_run=1).begin()
    small.settle()
    leased.report("step 0 cannot be read")
    assert (leased.moment().training_run, leased.record.training_run) == (0, 0)
    known = small.index.run(RUN)
    assert (known.training_run, "step 0 cannot be read" in known.trouble) == (1, True)


def test_late_files_of_an_earlier_attempt_are_noted_as_of_that_attempt(small):
    """Views of the run's history need them."""
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    first.save(1, HEALTHY)
    late = small.bucket.hold_back()
    small.clock.time += 10
    Saver(small.place(), training_run=1).begin()
    small.settle()
    small.bucket.release(late)
    small.settle()
    assert small.index.step(RUN, 0, 1).with_index == {"worker_0"}
    of_resumed = small.index.step(RUN, 1, 1)
    assert of_resumed is None or not of_resumed.with_index


def test_files_of_another_training_that_has_ended_are_not_taken_for_those_of_the_new_one(small):
    """Both count their attempts from 0: only the run's id tells them apart."""
    first = Saver(small.place()).begin()
    first.save(0, HEALTHY)
    small.settle()
    first.save(1, HEALTHY)
    late = small.bucket.hold_back()
    small.place().write(END_MARKER, b"")
    small.settle()
    small.pass_time(4000)
    Saver(small.place(), run_id="run-2").begin()
    small.settle()
    record = small.index.run(RUN)
    assert (record.run_id, record.training_run, record.training_base) == ("run-2", 1, 1)
    small.bucket.release(late)
    small.settle()
    of_new = small.index.step(RUN, 1, 1)
    assert of_new is None or not of_new.with_index


@pytest.mark.parametrize(("resumed_at", "earlier"), [(None, [16, 10, 0]), (15, [10, 0]), (10, [0]), (0, [])])
def test_a_rule_and_a_reader_see_the_same_steps_of_earlier_attempts(small, resumed_at, earlier):
    report_every_step(small)
    first = Saver(small.place()).begin()
    for step in (0, 10, 16):
        first.save(step, HEALTHY)
    small.settle()
    note = {} if resumed_at is None else {"resumed_at": resumed_at}
    again = Saver(small.place(), training_run=1)
    again._attempt |= note
    small.clock.time += 30
    again.begin()
    again.save(20, HEALTHY)
    small.settle()
    history = IndexedHistory(small.index, small.index.run(RUN), small.place())
    assert [summary.step for summary in history.before(20)] == earlier
    assert history.at(16) is None or 16 in earlier
    trial = Trial("mnist", small.place(), wait_limits=IMPATIENT)
    assert trial.steps(show_incomplete_steps=True) == [*earlier[::-1], 20]


def attempts_at(small, attempts, *, age=0, days=0):
    """Save attempts, each from its first step on.

    `age` days pass before the last step of each, and `days` more before the last step of all.
    """
    for number, (start, steps) in enumerate(attempts):
        worker = Saver(small.place(), training_run=number)
        worker._attempt |= {"resumed_at": start} if number else {}
        small.clock.time += 30
        worker.begin()
        small.settle()
        for step in steps:
            if step == steps[-1]:
                is_last = number == len(attempts) - 1
                small.clock.time += (age + (days if is_last else 0)) * 86_400
            worker.save(step, HEALTHY)
            small.settle()


def test_an_attempt_that_saved_nothing_hides_nothing(small):
    attempts_at(small, [(0, [0, 10, 16]), (5, []), (12, [20])])
    trial = Trial("mnist", small.place(), wait_limits=IMPATIENT)
    assert trial.steps(show_incomplete_steps=True) == [0, 10, 20]
    record = small.index.run(RUN)
    history = IndexedHistory(small.index, record, small.place())
    assert [summary.step for summary in history.before(21)] == [20, 10, 0]
    listing = ShownListing(small.place(), 20, attempts_of(small.index, record))
    assert [summary.step for summary in listing.before(21)] == [20, 10, 0]


def test_a_view_below_the_steps_of_a_later_attempt_hides_what_that_replaced(small):
    attempts_at(small, [(0, [0, 10, 16]), (15, [17]), (25, [27])])
    history = IndexedHistory(small.index, small.index.run(RUN), small.place())
    assert history.at(16) is None
    assert [summary.step for summary in history.before(17)] == [10, 0]


@pytest.mark.parametrize("deletes", ["nothing", "all", "even", "odd"])
@pytest.mark.parametrize("days", [0, 100])
@pytest.mark.parametrize("age", [0, 100])
@pytest.mark.parametrize(
    ("attempts", "seen"),
    [
        ([(0, [0, 10, 16])], [0, 10, 16]),
        ([(0, [0, 10, 16]), (15, [20, 30])], [0, 10, 20, 30]),
        ([(0, [0, 10, 16, 18]), (15, [17, 19]), (25, [27, 30])], [0, 10, 17, 19, 27, 30]),
        ([(0, [0, 10, 30]), (20, []), (15, [25])], [0, 10, 25]),
        ([(0, [0, 10, 30]), (0, [5, 40])], [5, 40]),
    ],
)
def test_expired_steps_of_earlier_attempts_are_as_hidden_as_a_reader_finds_them(
    small, attempts, seen, age, days, deletes
):
    attempts_at(small, attempts, age=age, days=days)
    expired = [
        item
        for item in small.items.query(f"RUN#{RUN}")
        if item.get("expires", small.clock.now()) < small.clock.now()
    ]
    chosen = {"nothing": [], "all": expired, "even": expired[::2], "odd": expired[1::2]}[deletes]
    for item in chosen:
        small.items.delete(item["pk"], item["sk"])
    trial = Trial("mnist", small.place(), wait_limits=IMPATIENT)
    assert trial.steps(show_incomplete_steps=True) == seen
    history = IndexedHistory(small.index, small.index.run(RUN), small.place())
    assert [summary.step for summary in history.before(100)] == seen[::-1]
    assert [step for step in range(50) if history.at(step)] == seen
