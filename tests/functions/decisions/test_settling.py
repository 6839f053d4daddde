from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.decisions.settling import (
    Ready,
    Settling,
    Waiting,
    late_steps,
    never_came,
    next_step,
    was_skipped,
)
from functions.evaluation.stepping import KEPT_STEPS, with_late_done
from smdebug.service.records import GroupRecord, StepRecord


def written(step: int, *workers: str, indexed: float = 100.0, **more) -> StepRecord:
    return StepRecord(
        step,
        with_event=frozenset(workers),
        with_index=frozenset(workers),
        indexed=indexed,
        **more,
    )


def settling(workers: int, **changes) -> Settling:
    defaults = {
        "cursor": -1,
        "records_previous_steps": True,
        "ended": False,
        "timeout": 900.0,
        "now": 101.0,
        **changes,
    }
    return Settling(num_workers=workers, **defaults)


def saved_by(plan: Mapping[str, list[int]]):
    """What each worker's index files say, given the steps that it saves."""

    def previous(step: int, worker: str) -> int | None:
        before = [saved for saved in plan[worker] if saved < step]
        return before[-1] if before else None

    return previous


BOTH = saved_by({"a": [0, 10, 20], "b": [0, 10, 20]})


def test_a_complete_step_whose_predecessors_were_evaluated_is_due():
    ten = written(10, "a", "b")
    assert next_step([ten], settling(2, cursor=0), BOTH) == Ready(ten)


def test_the_lowest_complete_step_comes_first():
    steps = [written(20, "a", "b"), written(0, "a", "b"), written(10, "a", "b")]
    assert next_step(steps, settling(2), BOTH).step.step == 0


def test_nothing_is_due_while_a_worker_owes_a_file():
    without_event = StepRecord(0, with_event=frozenset("a"), with_index=frozenset("ab"))
    assert next_step([written(0, "a")], settling(2), BOTH) is None
    assert next_step([without_event], settling(2), BOTH) is None
    assert next_step([], settling(2), BOTH) is None


def test_a_step_waits_for_the_one_that_its_workers_name():
    ten = written(10, "a", "b")
    assert next_step([ten], settling(2), BOTH) == Waiting(ten, missing=0, until=1000.0)
    half = written(0, "a")
    assert next_step([half, ten], settling(2), BOTH) == Waiting(ten, missing=0, until=1000.0)


def test_what_a_worker_skipped_is_passed_over():
    previous = saved_by({"a": [0, 5, 10], "b": [0, 10]})
    ten = written(10, "a", "b")
    steps = [written(5, "a"), ten]
    assert next_step(steps, settling(2, cursor=0), previous) == Ready(ten, frozenset({5}))


def test_one_that_was_skipped_by_some_and_is_on_its_way_from_others_is_waited_for():
    previous = saved_by({"a": [0, 5, 10], "b": [0, 10]})
    ten = written(10, "a", "b")
    verdict = next_step([ten], settling(2, cursor=0), previous)
    assert verdict == Waiting(ten, missing=5, until=1000.0)


def test_a_chain_is_followed_through_steps_that_others_skipped():
    previous = saved_by({"a": [0, 3, 5, 10], "b": [0, 3, 7, 10]})
    ten = written(10, "a", "b")
    steps = [written(5, "a"), written(7, "b"), ten]  # 3 has not shown itself yet
    assert next_step(steps, settling(2, cursor=0), previous).missing == 3


def test_a_timeout_or_the_end_settles_missing_steps():
    ten = written(10, "a", "b", indexed=100)
    for given_up in (settling(2, now=1000.0), settling(2, ended=True)):
        assert next_step([ten], given_up, BOTH) == Ready(ten, frozenset({0}), frozenset({0}))


def test_runs_of_the_old_library_are_taken_in_the_order_of_completion():
    ten = written(10, "a", "b")

    def nobody_knows(step: int, worker: str) -> int | None:
        raise AssertionError("old index files do not say")

    verdict = next_step([ten], settling(2, records_previous_steps=False), nobody_knows)
    assert verdict == Ready(ten)


def test_an_index_file_that_names_a_later_step_leads_nowhere():
    odd = {(10, "a"): 5, (5, "a"): 6, (6, "a"): 5}
    steps = [written(5, "a"), written(6, "a"), written(10, "a", "b")]
    verdict = next_step(steps, settling(2), lambda step, worker: odd.get((step, worker)))
    assert isinstance(verdict, Ready)


PLANS = st.lists(st.sets(st.integers(0, 8), max_size=6).map(sorted), min_size=1, max_size=3).map(
    lambda steps_of_workers: dict(zip("abc", steps_of_workers, strict=False))
)


def files_of(plan: Mapping[str, list[int]]) -> list[tuple[int, str, str]]:
    kinds = ("with_event", "with_index")
    return [(step, who, kind) for who, steps in plan.items() for step in steps for kind in kinds]


def with_file(record: StepRecord, worker: str, kind: str) -> StepRecord:
    return replace(record, **{kind: getattr(record, kind) | {worker}})


@given(PLANS.flatmap(lambda plan: st.tuples(st.just(plan), st.permutations(files_of(plan)))))
def test_in_whatever_order_files_arrive_steps_are_taken_in_theirs(plan_and_arrivals):
    """Every complete step is due once, in order, and none that is still to come is passed."""
    plan, arrivals = plan_and_arrivals
    records: dict[int, StepRecord] = {}
    cursor, taken, passed = -1, [], set()
    for step, worker, kind in arrivals:
        record = records.get(step, StepRecord(step, indexed=100.0))
        records[step] = with_file(record, worker, kind)
        while True:
            state = settling(len(plan), cursor=cursor)
            verdict = next_step([*records.values()], state, saved_by(plan))
            if not isinstance(verdict, Ready):
                break
            cursor = verdict.step.step
            taken.append(cursor)
            passed |= verdict.passed

    complete = set.intersection(*map(set, plan.values()))
    assert taken == sorted(complete)
    assert not passed & complete


def test_a_passed_step_that_arrives_is_late_once():
    after_ten = settling(1, cursor=10)
    seen = [replace(written(number, "a"), layout="of 10") for number in (0, 5, 10)]
    group = GroupRecord("builtin", cursor=10, passed=frozenset({5}))
    done = replace(group, late_done=frozenset({5}))
    assert late_steps([*seen, written(20, "a")], after_ten, group=group) == [seen[1]]
    assert late_steps(seen, after_ten, group=done) == []
    assert late_steps([StepRecord(5)], after_ten, group=group) == []


def test_the_step_before_a_missing_step_is_unknown():
    verdict = next_step(
        [written(10, "a")], settling(1, now=2000), lambda step, worker: step - 2 if step else None
    )
    assert (verdict.passed, verdict.missing) == ({8}, 8)


def test_a_step_passed_without_a_record_is_late():
    steps = [replace(written(number, "a"), layout="of another group") for number in (2, 3, 5, 10)]
    group = GroupRecord("builtin", cursor=10, passed=frozenset({5}), gaps=((2, 5),))
    assert late_steps(steps, settling(1, cursor=10), group=group) == [steps[1], steps[2]]


def test_late_steps_that_are_forgotten_are_not_late_again():
    group = GroupRecord("builtin", cursor=9000, gaps=((-1, 5000),))
    for step in range(0, 4 * KEPT_STEPS, 2):
        group = with_late_done(group, step)
    assert len(group.late_done) == KEPT_STEPS
    every = [written(step, "a") for step in range(4 * KEPT_STEPS)]
    late = late_steps(every, settling(1, cursor=9000), group=group)
    assert not [record.step for record in late if record.step % 2 == 0]
    assert 4 * KEPT_STEPS - 1 in [record.step for record in late]


@pytest.mark.parametrize("marked", [True, False])
def test_a_step_of_an_old_run_records_which_groups_evaluated_it(marked):
    by = frozenset({"builtin"}) if marked else frozenset({"custom-x"})
    five = written(5, "a", evaluated_by=by)
    old = settling(1, cursor=10, records_previous_steps=False)
    late = late_steps([five], old, group=GroupRecord("builtin", cursor=10))
    assert late == ([] if marked else [five])


# What never came


def test_a_step_that_waits_too_long_names_the_missing_workers():
    steps = [written(7, "worker_0", indexed=50.0), written(5, "worker_0", "worker_2", indexed=0.0)]
    assert never_came(steps, 4, timeout=900, now=899) == ""
    problem = never_came(steps, 4, timeout=900, now=900)
    assert problem == never_came(steps, 4, timeout=900, now=5000), "the same problem is reported once"
    assert "Step 5 was saved by 2 of 4 workers" in problem
    assert "worker_1, worker_3 is missing" in problem


def test_a_complete_step_waits_for_no_worker():
    assert never_came([written(5, "worker_0")], 1, timeout=900, now=5000) == ""


def test_devices_have_names_of_their_own_and_are_counted():
    problem = never_came([written(5, "/device:GPU:0")], 2, timeout=900, now=5000)
    assert "1 of them is missing" in problem


def test_many_that_are_missing_are_not_all_named():
    problem = never_came([written(5, "worker_0")], 1024, timeout=900, now=5000)
    assert "worker_8 and 1015 more is missing" in problem


def test_without_a_collections_file_that_is_what_is_missing():
    problem = never_came([written(5, "worker_0")], None, timeout=900, now=5000)
    assert "no collections file has arrived" in problem


SKIPS = saved_by({"a": [0, 10, 20], "b": [0, 20]})


@pytest.mark.parametrize(
    ("lost", "previous", "is_skipped"),
    [
        (written(10, "a"), SKIPS, True),
        (written(10), SKIPS, False),  # nothing has come
        (written(10, "b"), SKIPS, False),  # that of the worker that saved it has not
        (written(10, "a"), BOTH, False),  # the other one saved it, too
    ],
)
def test_a_lost_step_was_skipped_if_all_its_files_came_and_the_others_went_past_it(
    lost, previous, is_skipped
):
    assert was_skipped(lost, written(20, "a", "b"), {}.get, previous) is is_skipped


def test_a_step_is_not_known_to_be_skipped_beyond_a_step_that_has_not_come():
    through = saved_by({"a": [0, 10, 20], "b": [0, 10, 15, 20]})
    lost, later = written(10, "a"), written(20, "a", "b")
    assert not was_skipped(lost, later, {}.get, through)
    assert not was_skipped(lost, later, {15: written(15, "b")}.get, through)
    past = saved_by({"a": [0, 10, 20], "b": [0, 15, 20]})
    assert was_skipped(lost, later, {15: written(15, "b")}.get, past)
