"""What has to hold when nothing is pending, whatever has happened before."""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from functools import cache
from typing import Any

from functions.decisions.action_plan import Notify, plan
from functions.decisions.detail_types import ACTION_OUTCOME, CONDITION_MET
from functions.decisions.detail_types import RUN_STATE_CHANGE as RUN_STATE
from smdebug.rules.memory.state import read_state
from smdebug.service.records import GroupRecord, RuleRecord, RuleStatus, RunState
from tests.simulation import oracle
from tests.simulation.scenarios import SCENARIOS, Scenario
from tests.simulation.schedule import Schedule
from tests.simulation.scheduler import NeverQuiet
from tests.simulation.simulation import Simulation
from tests.simulation.trainings import RULES, Training


class Broken(AssertionError):
    """A promise was not kept: which, of which run, and the seed that shows it."""


def simulate(
    seed: int, scenario: str = "", *, keeps_history: bool = False, kind: type[Simulation] = Simulation
) -> Simulation:
    """The schedule of that seed, held to what was promised; of that scenario, else of the seed's own."""
    chosen = scenario_of(seed, scenario)
    simulation = kind(chosen, Schedule.drawn(seed), keeps_history=keeps_history)
    try:
        simulation.run()
        for training in chosen.trainings:
            _hold(simulation, chosen, training)
        if chosen.has_listeners:
            _hold_listeners(simulation)
        wrong = oracle.same_id_for_the_same(published_by(simulation), _straight(chosen))
        assert not wrong, wrong
    except Exception as problem:
        where = "" if isinstance(problem, AssertionError) else traceback.format_exc()
        raise Broken(f"Seed {seed} ({chosen.name!r}, {simulation.schedule}): {problem}\n{where}") from problem
    return simulation


def scenario_of(seed: int, name: str = "") -> Scenario:
    """That of this name, else the seed's own."""
    if name:
        return next(scenario for scenario in SCENARIOS if scenario.name == name)
    return SCENARIOS[seed % len(SCENARIOS)]


def _hold(simulation: Simulation, scenario: Scenario, training: Training) -> None:
    record = simulation.index.run(training.run)
    assert record is not None, f"{training.run} is not known"
    assert "training" not in record.troubles, record.troubles
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
    expected = oracle.statuses(training)
    statuses = {name: rules[name][0].status.value for name in training.wanted}
    assert statuses == expected, f"the statuses are {statuses}, not {expected}"
    for name in training.wanted:
        _published_all_findings(simulation, training, name, late, rules[name][0])
    _findings_are_whole(simulation, training)
    if training.ends:
        assert record.state is RunState.FINISHED, f"the run is {record.state}"
        assert record.verdict == oracle.verdict(training), f"the verdict is {record.verdict}"
        summaries = [detail for detail in simulation.details(RUN_STATE) if detail["summary"]]
        assert summaries, "no summary was published"


def _counted(training: Training, rules: dict[str, tuple[RuleRecord, GroupRecord]]) -> None:
    """The counts are of what the training has saved, however often anything was repeated."""
    for name in training.wanted:
        group = rules[name][1]
        counts = (group.evaluated, group.partly, group.not_evaluated)
        expected = (len(training.complete), len(training.partly), 0)
        assert counts == expected, f"{name} has counted {counts}, not {expected}"


def _published_all_findings(
    simulation: Simulation, training: Training, name: str, late: list[int], rule: RuleRecord
) -> None:
    """What was found in the last attempt was published: all of it, and nothing else."""
    if late:  # found and resolved in another order
        return
    published = [
        (kind, detail)
        for kind in (oracle.FOUND, oracle.RESOLVED)
        for detail in simulation.details(kind)
        if detail["run"] == training.run and detail["configuration"]["name"] == name
    ]
    found = {
        (detail["step"], kind) for kind, detail in published if detail["training_run"] == training.attempt
    }
    expected = oracle.events(training, name)
    if RULES[name].get("repeat") == "every_step":
        # Each step by itself, whenever the rule came.
        assert found == expected, f"{name} told of {sorted(found)}, not {sorted(expected)}"
    elif training.resumed or training.rules_change or training.rules_at_last is not None:
        pass  # when it opened its issue depends on when it came
    elif rule.catch_up_through >= 0:
        # Findings from before the rule was attached are marked, and published again if they persist.
        assert found >= expected, f"{name} told of {sorted(found)}, which lacks {sorted(expected)}"
    else:
        assert found == expected, f"{name} told of {sorted(found)}, not {sorted(expected)}"


def _findings_are_whole(simulation: Simulation, training: Training) -> None:
    """An event names the number of its findings, and where those are that it has no room for."""
    for detail in simulation.details(oracle.FOUND):
        rule = RULES[detail["configuration"]["name"]]
        if detail["run"] != training.run or rule["rule"] != "Floods":
            continue
        many = rule["parameters"]["findings"]  # type: ignore[index]
        evidence = detail["evidence"]
        assert evidence["count"] == many, f"{evidence['count']} findings of {many}"
        key = evidence["rest"].removeprefix("s3://runs/")
        rest = simulation.bucket.read("runs", key)
        found = sum(f"layer{number}: ".encode() in rest for number in range(many))
        assert found == many, f"{key} has {found} findings of {many}"


def _hold_listeners(simulation: Simulation) -> None:
    """Check that each event worth a message was sent, and that requested actions were done and recorded."""
    spoilt = simulation.counts["deaths"]
    letters = Counter(simulation.letters)
    everybody = {about for about, to in letters if to == "everybody"}
    worth = oracle.letters(published_by(simulation))
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
            assert any(detail["done"] for detail in recorded), f"nobody was told of {deed}: {recorded}"
            if isinstance(deed, Notify):
                assert letters[finding["id"], deed.to] >= 1, f"{deed.to} was not told"
    if outcomes:
        assert simulation.stopped_jobs, "the job was not stopped"


def _was_given_up(simulation: Simulation, rules: dict[str, Any], trouble: str) -> bool:
    """Return whether functions died so often that a rule or a step was rightly considered the cause."""
    given_up = "was given up: the function died" in trouble or any(
        "function died" in rule.reason or "It died" in rule.reason for rule, _ in rules.values()
    )
    assert not given_up or simulation.counts["deaths"] >= 3, "something was given up for nothing"
    return given_up


def _saw_everything(simulation: Simulation, training: Training, rule: RuleRecord, late: list[int]) -> None:
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


def _saw_nothing_twice(simulation: Simulation, training: Training, rule: RuleRecord, late: list[int]) -> None:
    """Check that a rule that was detached at some time saw steps as the others did."""
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


def published_by(simulation: Simulation) -> list[tuple[str, dict[str, Any]]]:
    """Return the type and the detail of each published event."""
    return [(event["DetailType"], json.loads(event["Detail"])) for event in simulation.events]


@cache
def _straight(scenario: Scenario) -> list[tuple[str, dict[str, Any]]]:
    """Return what is published where nothing goes wrong."""
    return published_by(Simulation(scenario, Schedule.orderly()).run())


def remember_straight_runs() -> None:
    """Run the scenarios before anything is broken on purpose, which would break these too."""
    for scenario in SCENARIOS:
        _straight(scenario)


def story_of(seed: int, scenario: str = "") -> str:
    """What happened in the schedule of that seed, call by call."""
    simulation = Simulation(scenario_of(seed, scenario), Schedule.drawn(seed), keeps_history=True)
    try:
        simulation.run()
    except NeverQuiet as problem:
        print(problem, file=sys.stderr)
    return "\n".join(simulation.history)
