"""Rules are attached to a live run, catch up, and are detached."""

from __future__ import annotations

import json

import pytest

from functions.arrivals.recording import record_arrivals
from functions.decisions.configuration import MOST_DETACHED
from functions.evaluation.built_in import evaluate
from functions.workflow_start import leave_check
from smdebug.service.step_index.items import LAST, run_pk
from tests.functions.promises.runs import (
    RUN,
    ahead_of_compared_run,
    cursor,
    found_steps,
    summaries,
)
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld
from tests.simulation.limits import size_of


def test_a_rule_attached_to_a_live_run_catches_up_and_acts_on_nothing_old(small):
    worker = Saver(small.place()).begin()
    for step in range(3):
        worker.save(step, {"gradient/fc": 1e-9})
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient", "actions": [{"name": "StopTraining"}]}]}',
    )
    small.settle()
    small.pass_time(10)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["rule"], found["step"], found["catch_up"]) == ("VanishingGradient", 0, True)
    assert found["actions"] == []
    worker.save(3, {"gradient/fc": 1e-9})
    small.settle()
    live = small.details("Rule Evaluation Condition Met")[-1]
    assert (live["step"], live["catch_up"]) == (3, False)
    assert live["actions"]


def test_a_rule_that_has_caught_up_joins_the_others(small):
    worker = Saver(small.place()).begin()
    for step in range(3):
        worker.save(step, HEALTHY)
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.settle()
    small.pass_time(10)
    (group,) = small.index.groups.all_of(RUN)
    assert [rule.name for rule in group.rules] == ["ExplodingTensor", "tiny"]
    assert small.index.run(RUN).groups == ("builtin",)
    worker.save(3, {"gradient/fc": 1e-9})
    small.settle()
    assert small.statuses() == {"ExplodingTensor": "InProgress", "tiny": "IssuesFound"}


def with_a_rule_in_a_lane(small):
    """Attach a second rule to a run whose step 0 is evaluated; return the lane in which it begins, too."""
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.place().write(
        "rules.json",
        b'{"version": 1, "default_rules": false, "rules": ['
        b'{"name": "ExplodingTensor", "rule": "ExplodingTensor"},'
        b'{"name": "tiny", "rule": "VanishingGradient"}]}',
    )
    small.deliver()
    small.workflow.started.clear()
    evaluate(small.world, RUN, "builtin", 0)
    lane = small.index.run(RUN).groups[-1]
    return worker, lane


def test_a_lane_that_is_always_done_before_the_others_joins_them_all_the_same(small):
    worker, lane = with_a_rule_in_a_lane(small)
    for step in (1, 2):
        worker.save(step, HEALTHY)
        small.deliver()
        small.workflow.started.clear()
        for group in (lane, "builtin"):
            mark = evaluate(small.world, RUN, group, step)["mark"]
            if mark["ids"]:
                small.index.mark_published(**mark)
    assert small.index.run(RUN).groups == ("builtin",)
    (group,) = small.index.groups.all_of(RUN)
    assert ([rule.name for rule in group.rules], group.cursor) == (["ExplodingTensor", "tiny"], 2)


def test_a_rule_whose_lane_joined_the_others_stays_with_them(small, monkeypatch):
    """An evaluation read the run's record before the lane joined, and took the lease after that."""
    _, lane = with_a_rule_in_a_lane(small)
    lease = small.index.groups.lease

    def lease_after_lane_joined(run, group, **when):
        monkeypatch.undo()
        for other in (lane, "builtin"):
            mark = evaluate(small.world, RUN, other, 0)["mark"]
            if mark["ids"]:
                small.index.mark_published(**mark)
        evaluate(small.world, RUN, "builtin", 0)
        assert small.index.run(RUN).groups == ("builtin",)
        return lease(run, group, **when)

    monkeypatch.setattr(small.index.groups, "lease", lease_after_lane_joined)
    evaluate(small.world, RUN, "builtin", 0)
    rules = [rule.name for group in small.index.groups.of_run(small.index.run(RUN)) for rule in group.rules]
    assert sorted(rules) == ["ExplodingTensor", "tiny"]


@pytest.mark.parametrize("delays", [(1, 300), (300, 1)])
def test_a_check_is_not_put_off_by_one_that_is_left_at_the_same_time(small, delays):
    """A start and the evaluation that it began each read the run before the other left its check."""
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    small.index.note_no_check(RUN)
    record = small.index.run(RUN)
    small.checks.waiting.clear()
    for delay in delays:
        leave_check(small.world, record, after=delay)
    assert (1, {"check": RUN}) in small.checks.waiting
    assert small.index.run(RUN).check_until == small.clock.now() + 1


def test_a_detached_rule_is_stopped_and_evaluates_no_more_steps():
    small = SmallWorld()
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    small.settle()
    small.place().write("rules.json", b'{"version": 1, "default_rules": false, "rules": []}')
    small.settle()
    worker.save(1, FAILING)
    small.settle()
    assert set(small.statuses().values()) == {"Stopped"}
    assert found_steps(small) == []


def _with_rules(small, *rules):
    small.place().write(
        "rules.json",
        json.dumps({"version": 1, "default_rules": False, "rules": list(rules)}).encode(),
    )
    small.settle()


@pytest.mark.parametrize("source", [None, "s3://runs/rule-sources/none.py"])
def test_records_stay_small_however_often_rules_come_and_go(small, source):
    """Ten thousand changes leave what a few dozen leave: each item may have 400 KB."""
    Saver(small.place()).begin().save(0, HEALTHY)
    small.settle()
    kept = {"name": "kept", "rule": "ExplodingTensor"}
    sizes = []
    for number in range(2 * MOST_DETACHED + 20):
        rule = {"name": f"rule-{number:05}", "rule": "ExplodingTensor"}
        _with_rules(small, kept, {**rule, **({"source": source} if source else {})})
        items = [
            item for item in small.items.query(run_pk(RUN), first="", last=LAST) if "expires" not in item
        ]
        sizes.append((len(items), max(map(size_of, items))))
    (early, _), (late, largest) = sizes[MOST_DETACHED + 10], sizes[-1]
    assert early == late
    assert largest < 100_000
    record = small.index.run(RUN)
    assert len(record.groups) <= MOST_DETACHED + 5
    assert len(small.index.rules(RUN).detached) == MOST_DETACHED
    statuses = small.statuses()
    assert len(statuses) <= MOST_DETACHED + 5
    assert statuses["kept"] == "InProgress"


def test_a_rule_that_was_forgotten_begins_again_when_it_comes_back(small):
    Saver(small.place()).begin().save(0, FAILING)
    first = {"name": "first", "rule": "ExplodingTensor"}
    _with_rules(small, first)
    for number in range(MOST_DETACHED + 4):
        _with_rules(small, {"name": f"rule-{number:05}", "rule": "VanishingGradient"})
    assert "first" not in small.statuses()
    _with_rules(small, first)
    small.pass_time(2)
    assert small.statuses()["first"] == "IssuesFound"


def test_rules_that_were_forgotten_do_not_change_the_verdict(small):
    worker = Saver(small.place()).begin()
    worker.save(0, HEALTHY)
    for number in range(MOST_DETACHED + 5):
        _with_rules(small, {"name": f"rule-{number:05}", "rule": "ExplodingTensor"})
    worker.end()
    small.settle()
    small.pass_time(2000)
    assert summaries(small)[-1]["verdict"] == "NoIssuesFound"


def test_two_runs_do_not_touch(small):
    first, second = Saver(small.place("a")).begin(), Saver(small.place("b")).begin()
    first.save(0, FAILING)
    second.save(0, HEALTHY)
    small.settle()
    assert small.statuses("runs/a") == {"ExplodingTensor": "IssuesFound"}
    assert small.statuses("runs/b") == {"ExplodingTensor": "InProgress"}


def test_a_rule_that_compares_two_runs_waits_for_the_other_and_blocks_no_rule():
    small, _, other = ahead_of_compared_run()
    small.settle()
    assert cursor(small) == 1
    assert found_steps(small) == []
    other.save(1, {"w": 1.0})
    small.settle()
    small.pass_time(400)
    (found,) = small.details("Rule Evaluation Condition Met")
    assert (found["rule"], found["step"]) == ("SimilarAcrossRuns", 1)


def test_arrivals_of_nothing_known_do_no_harm():
    small = SmallWorld()
    record_arrivals(small.world, RUN, [])
    assert small.index.run(RUN) is not None
