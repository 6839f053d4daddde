"""Runs whose first worker saves everything and the others digests: the first worker completes a step."""

from __future__ import annotations

import numpy as np

from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
DIGESTS = {"smdebug/digests/parameters": np.ones((1, 2), np.int64)}


def workers_of(place, how_many=3):
    return [Saver(place, f"worker_{rank}", replicas=how_many) for rank in range(how_many)]


def test_a_step_waits_for_the_first_worker_and_for_no_other():
    small = SmallWorld()
    chief, *others = workers_of(small.place())
    for other in others:
        other.begin().save(0, DIGESTS)
    small.settle()
    assert small.details("Rule Evaluation Condition Met") == []
    chief.begin().save(0, FAILING)
    chief.save(1, FAILING)
    small.settle()
    (group,) = small.index.groups.all_of(RUN)
    assert group.cursor == 1
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["step"], found["evidence"]["worst"][0]["tensor"]) == (0, "gradient/fc")


def test_digests_that_never_come_delay_nothing():
    small = SmallWorld()
    chief, second, _ = workers_of(small.place())
    chief.begin()
    second.begin().save(0, DIGESTS)
    small.bucket.hold_back("worker_1.tfevents")
    for step in range(3):
        chief.save(step, HEALTHY)
    second.save(2, DIGESTS)
    small.settle()
    (group,) = small.index.groups.all_of(RUN)
    assert group.cursor == 2
    assert group.outbox == {}


def test_the_collections_file_of_the_first_worker_is_the_one_that_counts():
    small = SmallWorld()
    chief, *others = workers_of(small.place())
    for other in others:
        other.begin()
    small.settle()
    assert small.index.run(RUN).num_workers is None
    chief.begin()
    small.settle()
    record = small.index.run(RUN)
    assert (record.num_workers, record.chief, record.collections_worker) == (
        1,
        "worker_0",
        "worker_0",
    )


def test_a_first_worker_whose_step_does_not_come_is_named():
    small = SmallWorld()
    chief, second, _ = workers_of(small.place())
    chief.begin().save(0, HEALTHY)
    second.begin().save(10, DIGESTS)
    small.settle()
    small.pass_time(7200)
    trouble = small.index.run(RUN).trouble
    assert "Step 10 has digests of 1 workers" in trouble
    assert "nothing of worker_0" in trouble
