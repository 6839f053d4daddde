"""A resumed training is evaluated from its checkpoint on."""

from __future__ import annotations

from tests.functions.promises.runs import report_every_step
from tests.functions.saver import FAILING, HEALTHY, Saver


def test_a_resumed_training_has_its_steps_evaluated_anew(small):
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
