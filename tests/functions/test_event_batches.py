"""Events wait for their publication as items of their own, which only a commit makes count."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.adapters.in_memory import MemoryItems
from functions.decisions.detail_types import CONDITION_MET
from functions.decisions.publishing import MAX_BATCH, MAX_ENTRIES, put_events_entries
from functions.rule_groups import LeaseLost
from functions.step_index import StepIndex
from smdebug.service.records import GroupRecord
from tests.functions.promises.runs import RUN
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

EVENT = {"detail_type": "Rule Evaluation Condition Met", "detail": "{}"}


def leased() -> tuple[StepIndex, MemoryItems, GroupRecord]:
    index = StepIndex(items := MemoryItems(), kept_for=1000, now=lambda: 0.0)
    index.groups.begin(RUN, GroupRecord("builtin"))
    return index, items, index.groups.lease(RUN, "builtin", now=1, seconds=10)


def calls_of(index: StepIndex) -> list[list[dict[str, str]]]:
    """The calls that publish the outbox of the group."""
    calls = []
    while outbox := index.groups.get(RUN, "builtin").outbox:
        chosen = index.pending(RUN, "builtin", outbox, most=MAX_ENTRIES, largest=MAX_BATCH)
        index.mark_published(RUN, "builtin", chosen.published, chosen.begun)
        calls.append(list(put_events_entries(chosen.entries, now=0.0)))
    return calls


def published(index: StepIndex) -> list[int]:
    """The numbers of events in these calls."""
    return [len(entries) for entries in calls_of(index)]


def test_a_training_that_explodes_loses_no_finding_and_blames_no_rule():
    """300 tensors that are not finite, and 70 rules that report each of them."""
    small = SmallWorld()
    names = [f"exploding-{number}" for number in range(70)]
    rules = [{"name": name, "rule": "ExplodingTensor"} for name in names]
    small.place().write(
        "rules.json", json.dumps({"version": 1, "default_rules": False, "rules": rules}).encode()
    )
    nan = {f"gradient/{number:03}": np.full(3, np.nan, np.float32) for number in range(300)}
    Saver(small.place()).begin().save(0, nan)
    small.settle()
    found = small.details("Rule Evaluation Condition Met")
    assert sorted(detail["configuration"]["name"] for detail in found) == sorted(names)
    assert {detail["evidence"]["count"] for detail in found} == {300}
    assert set(small.statuses().values()) == {"IssuesFound"}
    assert small.index.groups.get(RUN, "builtin").outbox == {}


def test_the_item_of_a_group_does_not_grow_with_its_events():
    index, items, held = leased()
    large = {"detail_type": "x", "detail": json.dumps("x" * 90_000)}
    index.groups.commit(RUN, held, {str(number): large for number in range(70)})
    size = sum(len(repr(value)) for value in items.get(f"RUN#{RUN}", "GROUP#builtin").values())
    assert size < 1000
    assert sum(published(index)) == 70


def test_a_batch_is_published_in_as_many_calls_as_it_takes():
    index, _, held = leased()
    index.groups.commit(RUN, held, {str(number): EVENT for number in range(23)})
    assert published(index) == [10, 10, 3]


@given(
    commits=st.lists(
        st.lists(st.integers(0, 90_000).map(lambda size: {"text": "x" * size}), max_size=15), max_size=3
    )
)
@settings(deadline=None, max_examples=50)
def test_calls_of_put_events_hold_what_they_may_and_nothing_is_left_out(commits):
    index, _, held = leased()
    numbers = count()
    for details in commits:
        events = {f"{next(numbers)}": detail for detail in details}
        outbox = {
            name: {"detail_type": CONDITION_MET, "detail": json.dumps({"id": name, "times": {}, **detail})}
            for name, detail in events.items()
        }
        index.groups.commit(RUN, held, outbox)
        held = index.groups.lease(RUN, "builtin", now=1e6 * held.token, seconds=10)
    calls = calls_of(index)
    sent = [json.loads(entry["Detail"])["id"] for entries in calls for entry in entries]
    assert sent == [str(number) for number in range(sum(map(len, commits)))]
    for entries in calls:
        assert len(entries) <= MAX_ENTRIES
        assert sum(len("".join(entry.values())) for entry in entries) <= MAX_BATCH
        assert all(entry.keys() == {"Source", "DetailType", "Detail"} for entry in entries)


def test_events_of_a_commit_that_was_refused_are_never_published_and_expire():
    index, items, held = leased()
    late = replace(held, token=held.token - 1)
    with pytest.raises(LeaseLost):
        index.groups.commit(RUN, late, {"lost": EVENT})
    assert published(index) == []
    (written,) = items.query(f"RUN#{RUN}", first="OUTBOX#", last="OUTBOX#\uffff")
    assert written["expires"] > 0
    index.groups.commit(RUN, held, {"kept": EVENT})
    assert published(index) == [1]
