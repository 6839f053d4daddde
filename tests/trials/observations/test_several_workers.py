"""What workers have saved with a step, whatever the form of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from smdebug.files.names import FACTS
from smdebug.files.observations import PARTS
from smdebug.trials.observations.one_step import ObservedSteps
from smdebug.trials.observations.whole_run import Observations
from tests.numbers.test_limits import ROW
from tests.trials.observations.test_worker_parts import HELD, group


class SeenBy:
    """The observations of a run of several workers, whose facts of one step are given."""

    def __init__(self, facts, roots=None):
        roots = roots or {}
        self.num_workers = len(facts)
        self.index = SimpleNamespace(
            workers_at=lambda step, mode: (
                {
                    worker: SimpleNamespace(
                        places={} if of is None else {FACTS: 0}, root_digests=roots.get(worker, {})
                    )
                    for worker, of in facts.items()
                }
                if step == 3
                else None
            )
        )
        self.observations = Observations(self)
        self.observations.at = lambda step, worker: SimpleNamespace(
            facts=facts[worker], digests=lambda kind: {"w": HELD} if kind == PARTS else {}
        )


@pytest.mark.parametrize("rows", [None, "no list", {"a": 1}, 3])
def test_times_of_another_form_are_those_of_no_worker(rows):
    seen = SeenBy({"worker_0": {"rank_times": [ROW, ["no row"], ROW]}, "worker_1": {"rank_times": rows}})
    found = seen.observations.rank_times(3)
    assert list(found) == ["worker_0"]
    assert [times.first for times in found["worker_0"]] == [20, 20]
    assert seen.observations.rank_times(4) == {}


@pytest.mark.parametrize("given", [None, [1], "text"])
def test_what_was_computed_twice_is_an_object(given):
    seen = SeenBy(
        {"worker_0": {"computed_twice": given}, "worker_1": {"computed_twice": {"a": 1}}, "worker_2": None}
    )
    assert seen.observations.computed_twice(3) == {"worker_1": {"a": 1}}


def test_workers_without_parts_hold_none():
    facts = {"parts": [group([1, 0], [0, None])]}
    roots = {"worker_0": {PARTS: "a", "parameters": "b"}, "worker_1": {"parameters": "b"}}
    found = SeenBy({"worker_0": facts, "worker_1": facts}, roots).observations.parts(3)
    assert list(found) == ["worker_0"]
    assert list(found["worker_0"].parts) == ["w"]


class Steps:
    """A source of steps without anything in them."""

    num_workers = 1

    def __init__(self):
        self.index = SimpleNamespace(workers_at=lambda step, mode: self.written.get(step))
        self.written = {step: {"worker_0": SimpleNamespace(places={})} for step in range(20)}

    def mode(self, step):
        return None


def test_damage_is_that_of_the_step_that_was_asked_for_last():
    steps = ObservedSteps(None, Steps())
    assert steps.damage_at(3) == {}
    steps.at(3).damaged["facts"] = "cut"
    assert steps.damage_at(3) == {"facts": "cut"}
    assert steps.damage_at(4) == {}
    steps.at(4)
    assert steps.damage_at(3) == {}


def test_a_step_is_read_again_when_other_workers_have_written_it():
    trial = Steps()
    steps = ObservedSteps(None, trial)
    first = steps.at(3)
    steps.at(4)
    assert steps.at(3) is first
    trial.written[3] = dict(trial.written[3])
    assert steps.at(3) is first, "nothing else was written"
    trial.written[3] = {**trial.written[3], "worker_1": SimpleNamespace(places={})}
    assert steps.at(3) is not first
    assert steps.at(3, "worker_1") is not steps.at(3, "worker_0")


@pytest.mark.parametrize(("budget", "kept"), [(0, 4), (4096 * 6, 6), (4096 * 7 - 1, 6), (1 << 30, 20)])
def test_four_steps_are_kept_and_more_as_far_as_there_is_room(budget, kept):
    steps = ObservedSteps(None, Steps())
    steps.limit(1 << 31)
    steps.limit(budget)
    steps.limit(1 << 31)
    seen = [steps.at(step) for step in range(20)]
    assert [step for step in range(19, -1, -1) if (step, None) in steps._kept] == list(
        range(19, 19 - kept, -1)
    )
    assert steps.at(20 - kept) is seen[20 - kept]


def test_steps_of_copies_are_those_at_which_several_workers_have_saved_digests():
    roots = {
        3: {"worker_0": {"parameters": "a"}, "worker_1": {"parameters": "b"}},
        5: {"worker_0": {"w": "a"}},
    }

    def workers_at(step, mode):
        return {
            worker: SimpleNamespace(root_digests=roots.get(step, {}).get(worker, {}))
            for worker in ("worker_0", "worker_1")
        }

    trial = SimpleNamespace(
        steps=lambda mode: [1, 3, 5, 7],
        global_step=lambda mode, step: None if step == 7 else step,
        index=SimpleNamespace(
            workers_by_step={
                1: frozenset(["worker_0"]),
                3: {"worker_0", "worker_1"},
                5: {"worker_0", "worker_1"},
            },
            workers_at=workers_at,
        ),
        num_workers=2,
    )
    observations = Observations(trial)
    assert observations.replica_steps() == [3]
    assert list(observations.roots(5)) == ["worker_0"]
    assert observations.roots(1) == {}
