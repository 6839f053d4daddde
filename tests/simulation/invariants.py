"""What has to hold when all is quiet, whatever has happened on the way."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from functions.decisions.detail_types import CONDITION_MET, ISSUE_RESOLVED, RUN_STATE_CHANGE
from smdebug.rules.state import read_state
from smdebug.service.records import RuleRecord, RuleStatus, RunState
from tests.simulation.simulation import NeverQuiet, Schedule, Simulation
from tests.simulation.trainings import RULES, Scenario, Training, scenarios


class Broken(AssertionError):
    """A promise was not kept: which, of which run, and the seed that shows it."""


def simulate(seed: int, *, keeps_history: bool = False) -> Simulation:
    """The schedule of that seed, held to what was promised."""
    known = scenarios()
    scenario = known[seed % len(known)]
    simulation = Simulation(scenario, Schedule.drawn(seed), keeps_history=keeps_history)
    try:
        simulation.run()
        for training in scenario.trainings:
            _hold(simulation, scenario, training)
    except Exception as problem:
        where = "" if isinstance(problem, AssertionError) else traceback.format_exc()
        raise Broken(
            f"Seed {seed} ({scenario.name}, {simulation.schedule}): {problem}\n{where}"
        ) from problem
    return simulation


def _hold(simulation: Simulation, scenario: Scenario, training: Training) -> None:
    record = simulation.index.run(training.run)
    assert record is not None, f"{training.run} is not known"
    groups = simulation.index.groups(training.run)
    late = sorted({step for group in groups for step in group.late_done})
    rules = {rule.name: (rule, group) for group in groups for rule in group.rules}
    assert len(rules) == sum(len(group.rules) for group in groups), "a rule is in two groups"
    assert rules.keys() == set(training.rules), f"the rules are {sorted(rules)}"
    if _was_given_up(simulation, rules, record.trouble):
        return
    for name, (rule, group) in rules.items():
        assert not group.outbox, f"{name} has unpublished events"
        _saw_everything(simulation, training, rule, late)
    straight = outcome_of(scenario, training)
    told = Outcome.of(simulation, training)
    assert told.statuses == straight.statuses, f"{told.statuses} is not {straight.statuses}"
    if late:  # found and resolved in another order
        pass
    elif any(rule.catch_up_through >= 0 for rule, _ in rules.values()):
        # What was found before its rule came is told apart, and again when it is still so.
        assert told.found >= straight.found, f"{told.found} lacks some of {straight.found}"
    else:
        assert told.found == straight.found, f"{told.found} is not {straight.found}"
    if training.ends:
        assert record.state is RunState.FINISHED, f"the run is {record.state}"
        assert told.summaries, "no summary was published"


def _was_given_up(simulation: Simulation, rules: dict[str, Any], trouble: str) -> bool:
    """Did functions die so often that a rule or a step was rightly held to be the cause?"""
    given_up = "was given up: the function died" in trouble or any(
        "function died" in rule.reason for rule, _ in rules.values()
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
        assert at not in [one[0] for one in seen], f"it saw {seen}, and was to break at {at}"
        # What it remembered since the last commit went with it; nothing will ever ask for that again.
        expected = [one for one in expected if one[0] in {step for step, *_ in seen}]
        assert late or len(seen) <= at, f"it saw {seen}, and was to break at {at}"
    if not late:
        in_order = [one[:2] for one in seen] == [one[:2] for one in expected]
        assert in_order, f"{rule.name} saw {seen}, not {expected}"
        whole = not training_has_gaps(training)
        assert not whole or seen == expected, f"{rule.name} saw {seen}, not {expected}"
        return
    assert sorted(one[:2] for one in seen) == [one[:2] for one in expected], (
        f"{rule.name} saw {seen}, not {expected} in some order (late: {late})"
    )
    punctual = [one[0] for one in seen if one[0] not in late]
    assert punctual == sorted(punctual), f"{rule.name} saw {seen}; late are only {late}"


def _remembered(simulation: Simulation, training: Training, rule: RuleRecord) -> list[Any]:
    data = rule.state
    if rule.state_key:
        data = simulation.bucket.read("runs", f"{training.prefix}/{rule.state_key}")
    return read_state(data)["seen"] if data else []


def training_has_gaps(training: Training) -> bool:
    return len({*training.saves}) > 1 or training.written_by_old_library


@dataclass(frozen=True)
class Outcome:
    """What somebody learns of a run who is told everything."""

    statuses: dict[str, str]
    found: frozenset[tuple[str, str]]
    summaries: frozenset[str]

    @classmethod
    def of(cls, simulation: Simulation, training: Training) -> Outcome:
        def told(detail_type: str) -> list[dict[str, Any]]:
            return [one for one in simulation.details(detail_type) if one["run"] == training.run]

        groups = simulation.index.groups(training.run)
        return cls(
            {rule.name: rule.status.value for group in groups for rule in group.rules},
            frozenset(
                (one["id"], detail_type)
                for detail_type in (CONDITION_MET, ISSUE_RESOLVED)
                for one in told(detail_type)
            ),
            frozenset(one["id"] for one in told(RUN_STATE_CHANGE) if one["summary"]),
        )


@cache
def _straight(number: int) -> Simulation:
    return Simulation(scenarios()[number], Schedule.orderly()).run()


def outcome_of(scenario: Scenario, training: Training) -> Outcome:
    """What the straight run comes to, in which nothing goes wrong."""
    return Outcome.of(_straight(scenarios().index(scenario)), training)


def story_of(seed: int) -> str:
    """What happened in the schedule of that seed, call by call."""
    known = scenarios()
    schedule = Schedule.drawn(seed)
    simulation = Simulation(known[seed % len(known)], replace(schedule), keeps_history=True)
    try:
        simulation.run()
    except NeverQuiet as problem:
        print(problem, file=sys.stderr)
    return "\n".join(simulation.history)
