"""What keeps two evaluations apart, without the simulation: leases, names of executions, attempts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from functions.adapters.in_memory import MemoryItems
from functions.arrivals.attempts import by_attempt, is_end_of
from functions.decisions.messages import arrival_of
from functions.evaluation.leased_group import current_record
from functions.rule_groups import GroupBusy, GroupGone, LeaseLost, RuleGroups
from functions.step_index import StepIndex
from functions.workflow_start import name_of, start_evaluation
from smdebug.files.names import END_MARKER, index_key
from smdebug.service.records import GroupRecord, RuleRecord, RunRecord
from tests.functions.promises.runs import EXPLODING, RUN
from tests.functions.saver import HEALTHY, Saver
from tests.functions.small_world import SmallWorld

GROUP = GroupRecord("builtin", rules=(RuleRecord("x", "x"),))


@pytest.fixture
def groups():
    groups = RuleGroups(MemoryItems(), lambda: 0.0)
    groups.begin(RUN, GROUP)
    return groups


def lease(groups, now, seconds=130):
    return groups.lease(RUN, "builtin", now=now, seconds=seconds)


def test_a_lease_keeps_others_out_until_it_is_over(groups):
    held = lease(groups, 1000)
    assert (held.lease_until, held.token, held.deaths) == (1130, 1, 1)
    for now in (1000, 1001, 1070, 1129, 1130):
        with pytest.raises(GroupBusy, match="being evaluated right now"):
            lease(groups, now)
    assert groups.get(RUN, "builtin") == held
    assert lease(groups, 1130.5).token == 2


def test_a_lease_that_nobody_committed_counts_as_a_death(groups):
    for number in range(1, 4):
        held = lease(groups, 1000 * number)
        assert (held.token, held.deaths) == (number, number)
    groups.commit(RUN, held, {})
    again = lease(groups, 5000)
    assert (again.token, again.deaths) == (4, 1)


def test_a_commit_ends_the_lease_at_once(groups):
    held = lease(groups, 1000)
    groups.commit(RUN, replace(held, cursor=7), {})
    known = groups.get(RUN, "builtin")
    assert (known.lease_until, known.cursor) == (0, 7)
    assert lease(groups, 1000).token == 2


def test_who_lost_the_lease_changes_nothing_even_after_its_successor_has_committed(groups):
    lost = lease(groups, 1000)
    held = lease(groups, 2000)
    before = groups.get(RUN, "builtin")
    for _ in range(2):
        with pytest.raises(LeaseLost, match="nothing was committed"):
            groups.commit(RUN, replace(lost, cursor=9), {})
        with pytest.raises(LeaseLost):
            groups.note_alone(RUN, lost, "x")
        assert groups.get(RUN, "builtin") == before
        if before == held:
            groups.commit(RUN, replace(held, cursor=3), {})
            before = groups.get(RUN, "builtin")
    assert before.cursor == 3


def test_a_group_that_is_gone_cannot_be_leased_and_is_not_made_by_it(groups):
    with pytest.raises(GroupGone):
        groups.lease(RUN, "lane-gone", now=1, seconds=1)
    assert groups.get(RUN, "lane-gone") is None


def test_a_group_begins_once(groups):
    lease(groups, 1000)
    assert not groups.begin(RUN, GROUP)
    assert groups.get(RUN, "builtin").token == 1


@pytest.mark.parametrize(
    ("events", "is_left"),
    [((), False), (("lease",), True), (("lease", "commit"), True), (("know", "lease", "commit"), True)],
)
def test_a_group_is_forgotten_unless_it_was_leased(groups, events, is_left):
    known = groups.get(RUN, "builtin")
    for event in events:
        if event == "lease":
            held = lease(groups, 1000)
        if event == "commit":
            groups.commit(RUN, held, {})
    groups.forget(RUN, known)
    assert (groups.get(RUN, "builtin") is not None) is is_left


RECORD = RunRecord(RUN, groups=("builtin", "lane-x"))


def with_a_lane():
    """Return an index with a group and a lane beside it that is leased, and both as they are."""
    index = StepIndex(MemoryItems(), kept_for=1, now=lambda: 0.0)
    index.begin_run(RECORD)
    for group in (GROUP, GroupRecord("lane-x")):
        index.groups.begin(RUN, group)
    held = index.groups.lease(RUN, "lane-x", now=1000, seconds=100)
    return index.groups, held, index.groups.get(RUN, "builtin")


def test_a_lane_joins_its_group_in_one_write():
    groups, held, into = with_a_lane()
    assert groups.merge(RECORD, held, into, replace(into, cursor=4))
    assert groups.get(RUN, "lane-x") is None
    assert groups.get(RUN, "builtin").cursor == 4


@pytest.mark.parametrize("meanwhile", ["run changed", "group leased", "group moved on", "lane leased again"])
def test_a_lane_does_not_join_what_has_moved_on(meanwhile):
    record = RECORD
    groups, held, into = with_a_lane()
    if meanwhile == "run changed":
        record = replace(record, version=record.version + 1)
    if meanwhile in ("group leased", "group moved on"):
        other = lease(groups, 1000)
        if meanwhile == "group moved on":
            groups.commit(RUN, replace(other, cursor=1), {})
    if meanwhile == "lane leased again":
        groups.lease(RUN, "lane-x", now=2000, seconds=100)
    before = [groups.get(RUN, name) for name in ("builtin", "lane-x")]
    assert not groups.merge(record, held, into, replace(into, cursor=4))
    assert [groups.get(RUN, name) for name in ("builtin", "lane-x")] == before


def test_the_name_of_an_execution_differs_with_each_part_of_its_cause():
    runs = ("b/a", "b/a\n1", "b/b")
    causes = list(product(runs, (0, 1, 11), ("", "1", "finish-1"), (False, True)))
    names = [name_of(run, step, attempt, finish=finish) for run, step, attempt, finish in causes]
    assert len(set(names)) == len(causes)
    assert names == [name_of(run, step, attempt, finish=finish) for run, step, attempt, finish in causes]
    assert all(re.fullmatch(r"[0-9A-Za-z-]{1,80}", name) for name in names)
    assert name_of("b/a", 11, "").startswith("11-")


def test_the_same_cause_starts_one_execution_and_another_attempt_another():
    small = SmallWorld(EXPLODING)
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    for attempt, started in (("", 1), ("", 1), ("a", 2), ("a", 2), ("b", 3)):
        start_evaluation(small.world, RUN, 0, attempt=attempt)
        assert len(small.workflow.started) == started


def test_a_step_that_is_late_starts_an_execution_beside_one_that_has_run():
    small = SmallWorld(EXPLODING)
    saver = Saver(small.place()).begin()
    small.settle()
    for step in range(4):
        saver.save(step, HEALTHY)
    early = [small.bucket.hold_back(f"{step:012}_worker") for step in (0, 1)]
    again = list(small.bucket.notifications)
    small.settle()
    assert small.index.groups.get(RUN, "builtin").cursor < 2, "they wait for the steps before them"
    for late in early:  # in one batch with files that came before
        small.bucket.release([*late, *again])
    small.settle()
    assert small.index.groups.get(RUN, "builtin").cursor == 3


# Attempts


def file(key, uploaded):
    return arrival_of("runs", f"mnist/{key}", uploaded=uploaded)


RESUMED = RunRecord(RUN, run_id="run-1", training_run=1, attempt_began=1000.4, attempt_noted=1010.0)


@pytest.mark.parametrize(
    ("uploaded", "is_end"), [(0.0, True), (1.0, False), (999.0, False), (1000.0, True), (2000.0, True)]
)
def test_an_end_marker_from_before_the_attempt_is_not_its_end(uploaded, is_end):
    """S3 lists whole seconds: the second in which the attempt began may be of both."""
    assert is_end_of(RESUMED, file(END_MARKER, uploaded)) is is_end


@pytest.mark.parametrize("record", [RESUMED, replace(RESUMED, attempt_began=0.0, training_run=0)])
@pytest.mark.parametrize(
    ("uploaded", "is_earlier"), [(990.0, True), (1010.0, True), (1011.0, True), (1011.5, False)]
)
def test_files_of_the_moment_in_which_an_attempt_was_noted_name_their_own(record, uploaded, is_earlier):
    small = SmallWorld(EXPLODING)
    Saver(small.place(), training_run=0).begin().save(3, HEALTHY)
    written = file(index_key(3, "worker_0"), uploaded)
    current, earlier = by_attempt(small.world, record, [written])
    expected = [written] if is_earlier and record.attempt_began else []
    assert earlier == expected
    assert current == ([] if expected else [written])


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_an_index_file_that_cannot_be_read_is_of_the_current_attempt_which_reports_it(content):
    small = SmallWorld(EXPLODING)
    small.place().write(index_key(3, "worker_0"), content)
    written = file(index_key(3, "worker_0"), 1005.0)
    assert by_attempt(small.world, RESUMED, [written]) == ([written], [])


@pytest.mark.parametrize(("seen", "is_read_again"), [(0, False), (1, False), (2, True)])
def test_the_record_is_read_again_only_if_the_group_has_seen_a_later_attempt(seen, is_read_again):
    small = SmallWorld(EXPLODING)
    Saver(small.place()).begin()
    small.settle()
    known = replace(small.index.run(RUN), training_run=1, verdict="as it was")
    found = current_record(small.world, known, GroupRecord("builtin", training_run=seen))
    assert (found.verdict == "as it was") is not is_read_again
