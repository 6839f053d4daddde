"""What separates two processes in the step index, and what a read must see: one plain test each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from functions.adapters.dynamodb import DynamoItems
from functions.adapters.in_memory import MemoryItems
from functions.decisions.messages import is_older
from functions.evaluation.lanes import join_level_lanes
from functions.evaluation.leased_group import LeasedGroup
from functions.rule_groups import LeaseLost
from functions.step_index import StepIndex
from smdebug.service.aws import Table
from smdebug.service.records import GroupRecord, RuleRecord, RunRecord
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
LANE = GroupRecord("lane-x", rules=(RuleRecord("x", "x"),))


def index_with(*groups: GroupRecord) -> StepIndex:
    index = StepIndex(MemoryItems(), kept_for=1000, now=lambda: 0.0)
    for group in groups:
        index.groups.begin(RUN, group)
    return index


def test_every_read_of_the_table_is_consistent():
    requests: list[dict[str, Any]] = []

    class Client:
        meta = SimpleNamespace(region_name="us-east-1")

        def get_item(self, **request: Any) -> dict[str, Any]:
            requests.append(request)
            return {}

        def query(self, **request: Any) -> dict[str, Any]:
            requests.append(request)
            return {"Items": []}

    deployed = DynamoItems("table", Client())
    read_by_a_user = Table("table", lambda service: Client())
    for table in (deployed, read_by_a_user):
        table.get("a", "b")
        table.query("a")
    assert [request["ConsistentRead"] for request in requests] == [True] * 4


def test_a_commit_forgets_which_rule_was_evaluated_alone():
    index = index_with(GroupRecord("builtin"))
    held = index.groups.lease(RUN, "builtin", now=1, seconds=10)
    index.groups.note_alone(RUN, held, "x")
    assert index.groups.get(RUN, "builtin").alone == ("x",)
    index.groups.commit(RUN, held, {})
    assert index.groups.get(RUN, "builtin").alone == ()


def test_a_process_that_lost_its_lease_blames_no_rule():
    index = index_with(GroupRecord("builtin"))
    lost = index.groups.lease(RUN, "builtin", now=1, seconds=10)
    index.groups.lease(RUN, "builtin", now=20, seconds=10)
    with pytest.raises(LeaseLost):
        index.groups.note_alone(RUN, lost, "x")
    assert index.groups.get(RUN, "builtin").alone == ()


def test_a_lane_that_is_at_work_is_not_replaced():
    index = index_with(LANE)
    held = index.groups.lease(RUN, LANE.group, now=1, seconds=10)
    index.groups.commit(RUN, replace(held, cursor=5), {})
    index.groups.begin_lane(RUN, LANE)
    assert index.groups.get(RUN, LANE.group).cursor == 5


def merged(index: StepIndex, into: GroupRecord, lane: GroupRecord) -> bool:
    """Merge the lane into the group, as both were read before."""
    record = index.run(RUN)
    return index.groups.merge(record, lane, into, replace(into, rules=lane.rules))


@pytest.fixture
def with_lane() -> StepIndex:
    index = index_with(GroupRecord("builtin"), LANE)
    index.begin_run(RunRecord(RUN, groups=("builtin", LANE.group)))
    return index


def test_no_lane_joins_a_group_that_is_leased(with_lane):
    with_lane.groups.lease(RUN, "builtin", now=1, seconds=10)
    leased = with_lane.groups.get(RUN, "builtin")
    assert not merged(with_lane, leased, LANE)
    assert with_lane.groups.get(RUN, LANE.group) is not None


@pytest.mark.parametrize("progress", [{}, {"cursor": 5}])
def test_no_lane_joins_a_group_that_was_leased_since_it_was_read(with_lane, progress):
    as_read = with_lane.groups.get(RUN, "builtin")
    held = with_lane.groups.lease(RUN, "builtin", now=1, seconds=10)
    with_lane.groups.commit(RUN, replace(held, **progress), {})
    assert not merged(with_lane, as_read, LANE)
    assert with_lane.groups.get(RUN, "builtin").cursor == progress.get("cursor", -1)


def test_no_lane_joins_the_others_that_was_leased_since_it_was_read(with_lane):
    as_read = with_lane.groups.get(RUN, LANE.group)
    with_lane.groups.lease(RUN, LANE.group, now=1, seconds=10)
    assert not merged(with_lane, with_lane.groups.get(RUN, "builtin"), as_read)
    assert with_lane.groups.get(RUN, LANE.group) is not None


def test_no_lane_joins_the_others_before_its_events_are_published(with_lane):
    held = with_lane.groups.lease(RUN, LANE.group, now=1, seconds=10)
    with_lane.groups.commit(RUN, held, {"an-event": {"detail_type": "t", "detail": "{}"}})
    lane = with_lane.groups.get(RUN, LANE.group)
    assert lane.outbox
    assert not merged(with_lane, with_lane.groups.get(RUN, "builtin"), lane)


@pytest.mark.parametrize("held", ["builtin", LANE.group])
def test_groups_of_which_another_process_holds_one_are_not_level(held):
    world = SmallWorld().world
    lane = replace(LANE, cursor=5)
    for group in (GroupRecord("builtin", cursor=5), lane):
        world.index.groups.begin(RUN, group)
    record = RunRecord(RUN, groups=("builtin", LANE.group), run_id="run-1")
    world.index.begin_run(record)
    world.index.groups.lease(RUN, held, now=1, seconds=10)
    join_level_lanes(LeasedGroup(world, record, GroupRecord("builtin"), begun=1))
    assert world.index.run(RUN).groups == record.groups
    world.index.groups.commit(RUN, world.index.groups.get(RUN, held), {})
    join_level_lanes(LeasedGroup(world, record, GroupRecord("builtin"), begun=1))
    assert world.index.run(RUN).groups == ("builtin",)


def test_versions_of_a_file_are_compared_from_the_left():
    assert is_older("0AA", "B")
    assert not is_older("B", "0AA")


@pytest.fixture
def index_of_large_steps():
    """Three steps, each of three items: above 96 workers a step has several."""
    index = index_with()
    for step in range(3):
        for shard in range(3):
            worker = 96 * shard
            files = frozenset({f"e{worker}", f"i{worker}"})
            index.note_arrivals(RUN, 0, step, shard, files, uploaded=1.0, indexed=1.0)
    return index


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("items_of_a_page", range(1, 9))
def test_a_page_holds_every_item_of_its_last_step(index_of_large_steps, items_of_a_page, newest_first):
    page = index_of_large_steps.steps(RUN, 0, limit=items_of_a_page, newest_first=newest_first)
    assert page
    assert [len(step.complete_workers) for step in page] == [3] * len(page)
