"""What keeps two processes apart in the step index, and what a read must see: each by one plain test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.dynamodb import DynamoItems
from functions.adapters.in_memory import MemoryItems
from functions.decisions.messages import is_older
from functions.rule_groups import LeaseLost
from functions.step_index import StepIndex
from smdebug.service.records import GroupRecord, RuleRecord, RunRecord

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
        def get_item(self, **request: Any) -> dict[str, Any]:
            requests.append(request)
            return {}

        def query(self, **request: Any) -> dict[str, Any]:
            requests.append(request)
            return {"Items": []}

    table = DynamoItems("table", Client())
    table.get("a", "b")
    table.query("a")
    assert [request["ConsistentRead"] for request in requests] == [True, True]


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


def test_no_lane_joins_a_group_that_is_leased():
    index = index_with(GroupRecord("builtin"), LANE)
    record = RunRecord(RUN, groups=("builtin", LANE.group))
    index.begin_run(record)
    into = index.groups.get(RUN, "builtin")
    merged = replace(into, rules=LANE.rules)
    index.groups.lease(RUN, "builtin", now=1, seconds=10)
    leased = index.groups.get(RUN, "builtin")
    assert not index.groups.merge(record, LANE, leased, merged)
    assert index.groups.get(RUN, LANE.group) is not None


def test_versions_of_a_file_are_compared_from_the_left():
    assert is_older("0AA", "B")
    assert not is_older("B", "0AA")


def test_a_page_holds_every_item_of_its_last_step():
    """Above 96 workers a step has several items, which the limit of a page may cut."""
    index = index_with()
    for step in range(3):
        for shard in range(3):
            token = frozenset({f"e{shard * 96}", f"i{shard * 96}"})
            index.note_arrivals(RUN, 0, step, shard, token, uploaded=1.0, indexed=1.0)
    for limit in range(1, 9):
        for newest_first in (False, True):
            steps = index.steps(RUN, 0, limit=limit, newest_first=newest_first)
            assert steps
            assert all(len(step.complete_workers) == 3 for step in steps), (limit, newest_first)
