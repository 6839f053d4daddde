"""Every step is evaluated once and in order, whatever arrives in whatever order and however often."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.functions.promises.runs import (
    EXPLODING,
    RUN,
    cursor,
    found_steps,
    report_every_step,
    summaries,
)
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 7))
def test_any_order_of_arrival_gives_every_step_its_turn_in_order(chance: random.Random, workers, batch):
    small = SmallWorld(EXPLODING)
    report_every_step(small)
    savers = [Saver(small.place(), f"worker_{n}", num_workers=workers).begin() for n in range(workers)]
    failing = sorted(chance.sample(range(8), 4))
    for step in range(8):
        for saver in savers:
            saver.save(step, FAILING if step in failing else HEALTHY)
    small.bucket.notifications += chance.sample(small.bucket.notifications, 10)  # some come twice

    while small.bucket.notifications:
        pending = small.bucket.hold_back()
        chance.shuffle(pending)
        some = chance.randint(1, len(pending))
        small.bucket.release(pending[:some])
        small.deliver(batch=batch)
        if chance.random() < 0.5:
            small.execute()
        small.bucket.release(pending[some:])
    small.execute()
    assert found_steps(small) == failing
    assert cursor(small) == 7


def test_a_repeated_notification_is_evaluated_once(small):
    report_every_step(small)
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    sent = list(small.bucket.notifications)
    small.settle()
    small.bucket.release(sent)
    small.settle()
    assert found_steps(small) == [0]


def with_the_first_step_late(small):
    """Save steps 0 and 10 of a failing run; return its worker, and what is held back of step 0."""
    report_every_step(small)
    worker = Saver(small.place()).begin()
    small.settle()
    worker.save(0, FAILING)
    late = small.bucket.hold_back()
    worker.save(10, FAILING)
    small.settle()
    return worker, late


def test_a_later_step_waits_for_the_one_its_worker_saved_before(small):
    _, late = with_the_first_step_late(small)
    assert found_steps(small) == []
    small.bucket.release(late)
    small.settle()
    assert found_steps(small) == [0, 10]


def test_it_waits_up_to_its_timeout_and_marks_a_late_step(small):
    _, late = with_the_first_step_late(small)
    small.pass_time(1000)
    assert found_steps(small) == [10]
    small.bucket.release(late)
    small.settle()
    found = small.details("Rule Evaluation Condition Met")
    assert [(detail["step"], detail["late"]) for detail in found] == [(10, False), (0, True)]
    small.bucket.release(late)
    small.settle()
    assert found_steps(small) == [10, 0]


def test_a_late_step_whose_evaluation_died_is_evaluated_with_the_next(small):
    worker, late = with_the_first_step_late(small)
    small.pass_time(1000)
    small.bucket.release(late)
    small.deliver()
    small.workflow.started.clear()
    worker.save(20)
    small.settle()
    assert found_steps(small) == [10, 0]


def test_a_step_that_a_worker_skipped_blocks_no_other(small):
    first, second = (Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1"))
    for step in (0, 5, 10):
        first.save(step, HEALTHY)
    for step in (0, 10):
        second.save(step, FAILING if step == 10 else HEALTHY)
    small.settle()
    assert found_steps(small) == [10]
    assert small.index.groups.get(RUN, "builtin").passed == {5}


def test_runs_of_the_old_library_are_evaluated_as_their_steps_become_complete(small):
    report_every_step(small)
    worker = Saver(small.place(), run_id=None).begin()
    small.settle()
    worker.save(0, FAILING)
    late = small.bucket.hold_back()
    worker.save(10, FAILING)
    small.settle()
    assert found_steps(small) == [10]
    small.bucket.release(late * 2)
    small.settle()
    small.bucket.release(late)
    small.settle()
    found = small.details("Rule Evaluation Condition Met")
    assert [(detail["step"], detail["late"]) for detail in found] == [(10, False), (0, True)]


def test_a_skipped_step_whose_files_came_too_late_is_not_counted_as_lost(small):
    first, second = (Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1"))
    small.settle()
    for step in range(3):
        first.save(step, HEALTHY)
    held = small.bucket.hold_back("000000000001")
    for step in (0, 2):  # not 1
        second.save(step, HEALTHY)
    small.settle()
    small.pass_time(1000)
    assert small.index.groups.get(RUN, "builtin").lost == {1}
    small.bucket.release(held)
    for saver in (second, first):
        saver.close()
    first.end()
    small.settle()
    small.pass_time(4000)
    (summary,) = summaries(small)
    assert (summary["steps"], summary["not_evaluated"]) == (2, 0)
    assert summary["verdict"] == "NoIssuesFound"
