"""When a step is complete."""

from __future__ import annotations

import pytest

from tests.functions.promises.runs import cursor, found_steps
from tests.functions.saver import FAILING, HEALTHY, Saver


def test_a_step_is_evaluated_when_both_files_of_every_worker_are_there(small):
    first, second = (Saver(small.place(), w, num_workers=2).begin() for w in ("worker_0", "worker_1"))
    first.save(0, FAILING)
    small.settle()
    assert cursor(small) == -1
    second.save(0, HEALTHY)
    small.settle()
    assert cursor(small) == 0
    assert found_steps(small) == [0]


def test_the_number_of_workers_may_arrive_after_the_first_steps(small):
    worker = Saver(small.place())
    worker.save(0, FAILING)
    small.settle()
    assert found_steps(small) == []
    worker.begin()
    small.settle()
    assert found_steps(small) == [0]


def test_an_index_file_without_its_event_file_is_not_enough(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    event_files = small.bucket.hold_back("events")
    small.settle()
    assert found_steps(small) == []
    small.bucket.release(event_files)
    small.settle()
    assert found_steps(small) == [0]


@pytest.mark.parametrize("workers", [1, 3, 120])
def test_any_number_of_workers_makes_a_step(small, workers):
    savers = [Saver(small.place(), f"worker_{n}", num_workers=workers).begin() for n in range(workers)]
    for saver in savers[:-1]:
        saver.save(0, HEALTHY)
    small.settle()
    assert cursor(small) == -1
    savers[-1].save(0, FAILING)
    small.settle()
    assert found_steps(small) == [0]


def test_a_device_is_a_worker_too(small):
    worker = Saver(small.place(), "/job:worker/replica:0/task:0/device:GPU:0").begin()
    worker.save(0, FAILING)
    small.settle()
    (found,) = small.details("Rule Evaluation Condition Met")
    assert found["evidence"]["worst"][0]["worker"] == "/job:worker/replica:0/task:0/device:GPU:0"
