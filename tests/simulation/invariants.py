"""What has to hold when all is quiet, whatever has happened on the way."""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

from functions.decisions.action_plan import Notify, plan
from functions.decisions.alerts import is_worth_a_message
from functions.decisions.detail_types import (
    ACTION_OUTCOME,
    CONDITION_MET,
    ISSUE_RESOLVED,
    RUN_STATE_CHANGE,
)
from smdebug.rules.state import read_state
from smdebug.service.records import GroupRecord, RuleRecord, RuleStatus, RunState, RunVerdict
from smdebug.service.rules_file import EVERY_STEP
from tests.simulation.schedule import Schedule
from tests.simulation.scheduler import NeverQuiet
from tests.simulation.simulation import Simulation
from tests.simulation.trainings import RULES, Scenario, Training, scenarios


class Broken(AssertionError):
    """A promise was not kept: which, of which run, and the seed that shows it."""


def simulate(seed: int, scenario: str = "", *, keeps_history: bool = False) -> Simulation:
    """The schedule of that seed, held to what was promised; of that scenario, else of the seed's own."""
    chosen = scenario_of(seed, scenario)
    simulation = Simulation(chosen, Schedule.drawn(seed), keeps_history=keeps_history)
    try:
        simulation.run()
        for training in chosen.trainings:
            _hold(simulation, chosen, training)
        if chosen.has_listeners:
            _hold_listeners(simulation)
    except Exception as problem:
        where = "" if isinstance(problem, AssertionError) else traceback.format_exc()
        raise Broken(
            f"Seed {seed} ({chosen.name!r}, {simulation.schedule}): {problem}\n{where}"
        ) from problem
    return simulation


def scenario_of(seed: int, name: str = "") -> Scenario:
    """That of this name, else the seed's own."""
    known = scenarios()
    return (
        next(scenario for scenario in known if scenario.name == name)
        if name
        else known[seed % len(known)]
    )


def _hold(simulation: Simulation, scenario: Scenario, training: Training) -> None:
    record = simulation.index.run(training.run)
    assert record is not None, f"{training.run} is not known"
    groups = simulation.index.groups.of_run(record)
    late = sorted({step for group in groups for step in group.late_done})
    rules = {rule.name: (rule, group) for group in groups for rule in group.rules}
    assert len(rules) == sum(len(group.rules) for group in groups), "a rule is in two groups"
    assert rules.keys() >= set(training.wanted), f"the rules are {sorted(rules)}"
    assert rules.keys() <= training.ever_wanted, f"the rules are {sorted(rules)}"
    if _was_given_up(simulation, rules, record.trouble):
        return
    for name, (rule, group) in rules.items():
        assert not group.outbox, f"{name} has unpublished events"
        if name in training.wanted:
            _saw_everything(simulation, training, rule, late)
        else:
            assert rule.status is RuleStatus.STOPPED, f"{name} is detached and {rule.status}"
            _saw_nothing_twice(simulation, training, rule, late)
    _counted(training, rules)
    if training.ends:
        _judged(training, record.verdict, [rules[name][0] for name in training.wanted])
    straight = outcome_of(scenario, training)
    outcome = Outcome.of(simulation, training)
    assert outcome.statuses == straight.statuses, f"{outcome.statuses} is not {straight.statuses}"
    for name in training.wanted:
        _published_all_findings(training, name, outcome, straight, late, rules[name][0])
    if training.ends:
        assert record.state is RunState.FINISHED, f"the run is {record.state}"
        assert outcome.summaries, "no summary was published"


def _counted(training: Training, rules: dict[str, tuple[RuleRecord, GroupRecord]]) -> None:
    """The counts are of what the training has saved, however often anything was repeated."""
    for name in training.wanted:
        group = rules[name][1]
        counts = (group.evaluated, group.partly, group.not_evaluated)
        expected = (len(training.complete), len(training.partly), 0)
        assert counts == expected, f"{name} has counted {counts}, not {expected}"


def _judged(training: Training, verdict: str, rules: list[RuleRecord]) -> None:
    """A good verdict needs that every rule has seen every step; what was found shows in it."""
    statuses = {rule.status for rule in rules}
    if RuleStatus.ISSUES_FOUND in statuses:
        assert verdict == RunVerdict.ISSUES_FOUND
    elif RuleStatus.ERROR in statuses:
        assert verdict == RunVerdict.ERROR
    else:
        whole = bool(training.complete) and not training.partly
        assert verdict == (RunVerdict.NO_ISSUES_FOUND if whole else RunVerdict.INCOMPLETE)


def _published_all_findings(
    training: Training,
    name: str,
    outcome: Outcome,
    straight: Outcome,
    late: list[int],
    rule: RuleRecord,
) -> None:
    found, oracle = outcome.found[name], straight.found[name]
    if late:  # found and resolved in another order
        return
    if RULES[name].get("repeat") == EVERY_STEP:
        # Each step by itself, whenever the rule came. What the first attempt found before it was
        # interrupted depends on how far its evaluation had come.
        last, expected = (
            {
                event[1:]
                for event in events
                if event[0] == training.attempt and event[2] == CONDITION_MET
            }
            for events in (found, oracle)
        )
        assert last == expected, f"{name} told of {sorted(last)}, not {sorted(expected)}"
    elif training.resumed or training.rules_change or training.rules_at_last is not None:
        pass  # when it opened its issue depends on when it came
    elif rule.catch_up_through >= 0:
        # What was found before its rule came is told apart, and again when it is still so.
        assert found >= oracle, f"{found} lacks some of {oracle}"
    else:
        assert found == oracle, f"{found} is not {oracle}"


def _hold_listeners(simulation: Simulation) -> None:
    """People were told of each event that is worth it, and what was asked for was done, and noted."""
    spoilt = simulation.counts["deaths"]
    letters = Counter(simulation.letters)
    everybody = {about for about, to in letters if to == "everybody"}
    worth = {
        json.loads(event["Detail"])["id"]
        for event in simulation.events
        if is_worth_a_message(event["DetailType"], json.loads(event["Detail"]))
    }
    assert everybody == worth, f"told of {everybody}, not of {worth}"
    often = {letter: times for letter, times in letters.items() if times > 1}
    assert sum(often.values()) - len(often) <= spoilt, f"told more than once: {often}"
    outcomes = {detail["id"]: detail for detail in simulation.details(ACTION_OUTCOME)}
    for finding in simulation.details(CONDITION_MET):
        for deed in plan(finding, simulation.action_ports().endpoints):
            kept = simulation.outcomes.settled(finding["run"], finding["group"], "", finding["id"])
            assert deed.id in kept, f"{deed} was not noted"
            recorded = [
                detail
                for detail in outcomes.values()
                if detail["finding_id"] == finding["id"] and detail["effect"] == deed.effect
            ]
            assert any(detail["done"] for detail in recorded), (
                f"nobody was told of {deed}: {recorded}"
            )
            if isinstance(deed, Notify):
                assert letters[finding["id"], deed.to] >= 1, f"{deed.to} was not told"
    if outcomes:
        assert simulation.stopped_jobs, "the job was not stopped"


def _was_given_up(simulation: Simulation, rules: dict[str, Any], trouble: str) -> bool:
    """Did functions die so often that a rule or a step was rightly held to be the cause?"""
    given_up = "was given up: the function died" in trouble or any(
        "function died" in rule.reason or "It died" in rule.reason for rule, _ in rules.values()
    )
    assert not given_up or simulation.counts["deaths"] >= 3, "something was given up for nothing"
    return given_up


def _saw_everything(
    simulation: Simulation, training: Training, rule: RuleRecord, late: list[int]
) -> None:
    expected = training.seen()
    seen = _remembered(simulation, training, rule)
    if rule.status is RuleStatus.ERROR:
        at = RULES[rule.name].get("parameters", {}).get("at")  # type: ignore[attr-defined]
        assert rule.name == "breaks", f"{rule.name} is in error: {rule.reason}"
        assert at not in [saw[0] for saw in seen], f"it saw {seen}, and was to break at {at}"
        # What it remembered since the last commit went with it; nothing will ever ask for that again.
        expected = [due for due in expected if due[0] in {step for step, *_ in seen}]
        assert late or len(seen) <= at, f"it saw {seen}, and was to break at {at}"
    if not late:
        in_order = [saw[:2] for saw in seen] == [due[:2] for due in expected]
        assert in_order, f"{rule.name} saw {seen}, not {expected}"
        whole = not training_has_gaps(training)
        assert not whole or seen == expected, f"{rule.name} saw {seen}, not {expected}"
        return
    assert sorted(saw[:2] for saw in seen) == [due[:2] for due in expected], (
        f"{rule.name} saw {seen}, not {expected} in some order (late: {late})"
    )
    punctual = [saw[0] for saw in seen if saw[0] not in late]
    assert punctual == sorted(punctual), f"{rule.name} saw {seen}; late are only {late}"


def _saw_nothing_twice(
    simulation: Simulation, training: Training, rule: RuleRecord, late: list[int]
) -> None:
    """A rule that was detached at some time: what it saw, it saw as the others did."""
    seen = _remembered(simulation, training, rule)
    steps = [saw[0] for saw in seen]
    assert len(set(steps)) == len(steps), f"{rule.name} saw {seen}"
    assert late or steps == sorted(steps), f"{rule.name} saw {seen}"
    expected = [due[:2] for due in training.seen()]
    assert all(saw[:2] in expected for saw in seen), f"{rule.name} saw {seen}, not of {expected}"


def _remembered(simulation: Simulation, training: Training, rule: RuleRecord) -> list[Any]:
    data = rule.state
    if rule.state_key:
        data = simulation.bucket.read("runs", f"{training.prefix}/{rule.state_key}")
    return read_state(data)["seen"] if data else []


def training_has_gaps(training: Training) -> bool:
    return len({*training.saves}) > 1 or training.written_by_old_library or bool(training.resumed)


PublishedFinding = tuple[
    int, int, str, str
]  # in which attempt, at which step, what, and under which id


@dataclass(frozen=True)
class Outcome:
    """What somebody learns of a run who is told everything."""

    statuses: dict[str, str]  # of the rules that watch it in the end
    found: dict[str, frozenset[PublishedFinding]]  # by each rule
    summaries: frozenset[str]

    @classmethod
    def of(cls, simulation: Simulation, training: Training) -> Outcome:
        def details_of_run(detail_type: str) -> list[dict[str, Any]]:
            return [
                detail
                for detail in simulation.details(detail_type)
                if detail["run"] == training.run
            ]

        record = simulation.index.run(training.run)
        groups = simulation.index.groups.of_run(record) if record else []
        found: dict[str, set[PublishedFinding]] = {name: set() for name in training.wanted}
        for detail_type in (CONDITION_MET, ISSUE_RESOLVED):
            for detail in details_of_run(detail_type):
                what = (detail["training_run"], detail["step"], detail_type, detail["id"])
                found.setdefault(detail["configuration"]["name"], set()).add(what)
        return cls(
            {
                rule.name: rule.status.value
                for group in groups
                for rule in group.rules
                if rule.name in training.wanted
            },
            {name: frozenset(what) for name, what in found.items()},
            frozenset(
                detail["id"] for detail in details_of_run(RUN_STATE_CHANGE) if detail["summary"]
            ),
        )


@cache
def _straight(number: int) -> Simulation:
    return Simulation(scenarios()[number], Schedule.orderly()).run()


def remember_straight_runs() -> None:
    """Before anything is broken on purpose, which would break these too."""
    for number in range(len(scenarios())):
        _straight(number)


def outcome_of(scenario: Scenario, training: Training) -> Outcome:
    """What the straight run comes to, in which nothing goes wrong."""
    return Outcome.of(_straight(scenarios().index(scenario)), training)


def story_of(seed: int, scenario: str = "") -> str:
    """What happened in the schedule of that seed, call by call."""
    simulation = Simulation(scenario_of(seed, scenario), Schedule.drawn(seed), keeps_history=True)
    try:
        simulation.run()
    except NeverQuiet as problem:
        print(problem, file=sys.stderr)
    return "\n".join(simulation.history)
