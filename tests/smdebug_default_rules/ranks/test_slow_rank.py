"""Slow ranks, on times that are made up: nothing here reads a clock."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from bench.slow_ranks import WITHIN, Training, healthy, slow
from smdebug import modes
from smdebug.numbers.rank_times import WindowTimes, window_row, window_times
from smdebug.rules.memory.state import restore_state, save_state
from smdebug_default_rules.ranks.slow_rank import SlowRank, delays, of_others

USUAL = (0.05, 0.3, 0.6, 0.05)


def window(first=10, *, steps=10, data=0.05, forward=0.3, update=0.05, total=1.0):
    """The times of a rank whose backward pass ends when those of the others do."""
    each = (data, forward, total - data - forward - update, update)
    return WindowTimes(*window_row(first, 0, [each] * steps))


class Written:
    """What ranks have saved: by step, the windows of each."""

    has_facts = True

    def __init__(self, ranks, **steps):
        self.expected_workers = ranks
        self.steps = {int(step.strip("_")): of for step, of in steps.items()}

    def rank_times(self, step):
        return {f"worker_{rank}": [times] for rank, times in self.steps.get(step, {}).items()}


def rule_on(written):
    return SlowRank(SimpleNamespace(observations=written))


def found(written, *steps, rule=None):
    rule = rule or rule_on(written)
    named = []
    for step in steps:
        seen = SimpleNamespace(step=step, mode=modes.TRAIN)
        named += [(step, each.worker, each.since) for each in rule.check(seen)]
    return named


def run(ranks=4, last=60, **changes):
    """Ranks of which the last one has these times from step 20 on."""
    steps = {}
    for step in range(10, last + 1, 10):
        slow_one = window(step - 10, **changes) if step > 20 else window(step - 10)
        steps[f"_{step}"] = {rank: window(step - 10) for rank in range(ranks - 1)} | {ranks - 1: slow_one}
    return Written(ranks, **steps)


STEPS = range(10, 61, 10)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("part", ["data", "forward", "update"])
def test_the_rank_that_takes_longer_for_what_it_does_alone_is_named_after_thirty_steps(ranks, part):
    more = {part: {"data": 0.05, "forward": 0.3, "update": 0.05}[part] + 0.1}
    name = f"worker_{ranks - 1}"
    assert found(run(ranks, **more), *STEPS) == [(50, name, 20), (60, name, 20)]


def test_the_step_of_the_run_is_named_where_evaluations_count_as_steps():
    written = run(forward=0.4)
    for of in written.steps.values():
        for rank, times in of.items():
            of[rank] = times._replace(offset=1000)
    assert found(written, *STEPS)[0] == (50, "worker_3", 1020)


@pytest.mark.parametrize(
    ("changes", "is_named"),
    [
        ({}, False),
        ({"data": 0.0725}, False),  # the others wait for less than 2.3% of a step
        ({"data": 0.0735, "forward": 0.3}, False),  # and it takes them 1.059 times as long
        ({"data": 0.075}, True),
        ({"data": 0.45, "total": 1.4}, False),  # the others do not wait: no step of theirs is longer
    ],
)
def test_a_delay_is_named_from_a_limit_on_and_only_if_the_others_wait(changes, is_named):
    assert bool(found(run(**changes), *STEPS)) is is_named


def test_where_forwards_exchange_parameters_the_time_between_passes_is_compared():
    """The others wait in their forward: all are as long until the backward pass."""
    written = run(forward=0.2, data=0.15)
    assert found(written, *STEPS)[0] == (50, "worker_3", 20)


def test_short_steps_are_judged_once_they_have_taken_five_seconds():
    steps = {
        f"_{step}": {0: window(step - 10, data=0.001, forward=0.01, update=0.0, total=0.04)}
        | {1: window(step - 10, data=0.005, forward=0.01, update=0.0, total=0.04)}
        for step in range(10, 201, 10)
    }
    assert found(Written(2, **steps), *range(10, 201, 10))[0][0] == 140  # 13 windows of 0.4 seconds


def test_a_delay_of_two_windows_is_a_moment():
    written = run(last=100, forward=0.5)
    for step in (30, 60, 90):
        written.steps[step][3] = window(step - 10)
    assert found(written, *range(10, 101, 10)) == []


def test_a_rank_that_is_as_fast_again_is_no_longer_named():
    written = run(last=80, forward=0.5)
    for step in (70, 80):
        written.steps[step][3] = window(step - 10)
    assert [step for step, _, _ in found(written, *range(10, 81, 10))] == [50, 60]


def test_of_ranks_that_differ_anyway_none_is_named():
    """Each has a batch of its own size; the slowest stands out as much as the fastest."""
    own = (0.20, 0.26, 0.32, 0.38)
    steps = {
        f"_{step}": {rank: window(step - 10, forward=each) for rank, each in enumerate(own)} for step in STEPS
    }
    assert found(Written(4, **steps), *STEPS) == []
    steps = {
        f"_{step}": {rank: window(step - 10, forward=each) for rank, each in enumerate((*own[:3], 0.9))}
        for step in STEPS
    }
    assert found(Written(4, **steps), *STEPS)[0][1] == "worker_3"


def test_two_slow_ranks_of_eight_are_both_named_the_slower_one_first():
    steps = {}
    for step in STEPS:
        of = {rank: window(step - 10) for rank in range(8)}
        steps[f"_{step}"] = of | {2: window(step - 10, data=0.2), 5: window(step - 10, data=0.3)}
    named = found(Written(8, **steps), *STEPS)
    assert [worker for step, worker, _ in named if step == 40] == ["worker_5", "worker_2"]


def test_the_first_steps_and_windows_with_few_of_them_are_not_judged():
    assert found(run(last=40, forward=0.5), *range(10, 41, 10)) == []
    few = run(forward=0.5)
    for of in few.steps.values():
        of[3] = of[3]._replace(steps=4)
    assert found(few, *STEPS) == []


def test_a_file_that_comes_late_is_read_at_the_next_step():
    written = run(last=70, forward=0.5)
    late = written.steps[50].pop(2)
    rule = rule_on(written)
    assert found(written, *range(10, 51, 10), rule=rule) == []
    written.steps[50][2] = late
    assert found(written, 60, rule=rule) == [(60, "worker_3", 20)]
    assert rule.waiting == {}


def test_a_rank_whose_files_never_come_holds_nobody_up():
    written = run(last=70, forward=0.5)
    for of in written.steps.values():
        del of[1]
    assert found(written, *range(10, 71, 10))[0] == (60, "worker_3", 20)


def test_what_few_of_many_ranks_say_is_not_judged():
    written = run(last=80, forward=0.5)
    written.expected_workers = 9
    assert found(written, *range(10, 81, 10)) == []


def test_at_the_end_of_the_run_the_last_windows_are_judged():
    written = run(last=50, forward=0.5)
    late = written.steps[50].pop(2)
    rule = rule_on(written)
    assert found(written, *range(10, 51, 10), rule=rule) == []
    written.steps[50][2] = late
    assert rule.invoke_at_end(50)
    assert [each.worker for each in rule.findings] == ["worker_3"]


def test_a_training_of_one_process_has_nothing_to_compare():
    rule = rule_on(Written(1))
    assert found(Written(1), 10, rule=rule_on(Written(1))) == []
    assert [*rule.check(SimpleNamespace(step=10))] == []
    assert rule.not_checked == "the run has a single worker"


def test_its_state_can_be_kept_between_steps():
    written, rule = run(forward=0.5), None
    named = []
    for step in STEPS:
        fresh = rule_on(written)
        if rule is not None:
            restore_state(fresh, save_state(rule))
        rule = fresh
        named += found(written, step, rule=rule)
    assert named == [(50, "worker_3", 20), (60, "worker_3", 20)]


def test_the_median_of_the_other_values_leaves_each_out():
    values = np.random.default_rng(0).random(7)
    for count in (2, 3, 4, 7):
        expected = [np.median(np.delete(values[:count], at)) for at in range(count)]
        np.testing.assert_allclose(of_others(values[:count]), expected)


def test_ranks_without_any_time_delay_nobody():
    nothing = WindowTimes(10, 0, 10, *[0.0] * 7)
    assert [each.share for each in delays([nothing, nothing])] == [0, 0]


@pytest.mark.parametrize(
    "row", [None, [1, 2], [10.5, 0, 10, *[0.1] * 7], [10, 0, 10, *[-0.1] * 7], [10, 0, 10, *["nan"] * 7]]
)
def test_a_row_of_another_form_is_left_out(row):
    assert window_times(row) is None
    written = json.loads(json.dumps(window_row(10, 0, [USUAL] * 10)))
    assert window_times(written) == window(10)


def test_no_rank_is_named_in_healthy_trainings():
    """The bench simulates more of them."""
    assert healthy(60, seed=0) == (0, 60)


@pytest.mark.parametrize("kind", ["all", "data", "forward"])
def test_a_rank_that_is_slower_by_a_tenth_to_three_times_is_named_within_fifty_steps(kind):
    """How often, of more of them and by how much slower they are, says the bench."""
    named, wrong, count = slow(40, 0, kind)
    assert (wrong, named >= 0.97 * count) == (0, True)


def test_a_slow_rank_is_named_with_the_step_since_when():
    training = Training(np.random.default_rng(3), 8, 5, 100, 1.5, steps=100 + WITHIN)
    assert {(worker, since) for _, worker, since in training.named()} == {("worker_5", 100)}
