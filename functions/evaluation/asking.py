"""Evaluating rules at one step, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from functions.decisions.rule_lifecycle import judge
from functions.evaluation.lanes import move_to_lane
from functions.evaluation.leased_group import LeasedGroup
from functions.telemetry import metrics
from smdebug.diagnosis.evidence import Evidence
from smdebug.rules.outcomes import Behind, Failed, Found, Outcome
from smdebug.service.records import BUILT_IN, RuleRecord, StepRecord

# After these deaths rules are evaluated one by one, to find the one that kills the function.
DEATHS_BEFORE_ALONE = 2
# After these the step is passed over: it kills the function before any rule runs.
DEATHS_BEFORE_PASSING = 4


def ask_each(
    leased: LeasedGroup,
    rules: Iterable[RuleRecord],
    step: StepRecord,
    *,
    late: bool = False,
    occasion: str = "",
    silent_for: float | None = None,
) -> bool:
    """Evaluate the rules; return False if one has to wait for another run, as nothing counts then.

    A built-in rule that has to wait moves to a lane instead, so that it holds up no other.
    """
    moment = leased.moment(step, late=late, occasion=occasion)
    outcomes: list[tuple[RuleRecord, Outcome]] = []
    for rule in rules:
        configuration = leased.configuration(rule)
        if leased.deaths >= DEATHS_BEFORE_ALONE:
            leased.world.index.groups.note_alone(leased.record.run, leased.group, rule.id)
        outcome = leased.bench.ask(rule, configuration, step.step, occasion=occasion, silent_for=silent_for)
        if isinstance(outcome, Behind):
            if leased.group.group != BUILT_IN:
                return False
            move_to_lane(leased, rule, leased.group.cursor)
            continue
        outcomes.append((rule, outcome))
    for problem in leased.bench.damage_at(step.step):
        leased.report(f"{problem}. Its tensors are left out.")
    found = {rule.id: outcome.evidence for rule, outcome in outcomes if isinstance(outcome, Found)}
    for rule, outcome in outcomes:
        catch_up = step.step <= rule.catch_up_through and silent_for is None
        others = _evidence_of_others(leased, rule, found) if rule.id in found else ()
        checkpoints = leased.checkpoints_before(rule, outcome)
        at = replace(moment, catch_up=catch_up, checkpoints=checkpoints)
        leased.apply(judge(rule, leased.configuration(rule), outcome, at, others))
        if isinstance(outcome, Failed):
            metrics({"RuleErrors": (1, "Count")})
    return True


def _evidence_of_others(
    leased: LeasedGroup, rule: RuleRecord, found: Mapping[str, Sequence[Evidence]]
) -> list[Evidence]:
    """Return what the other rules found at this step, and the evidence of their open issues."""
    return [
        evidence
        for other in leased.group.rules
        if other.id != rule.id
        for evidence in found.get(other.id) or leased.bench.open_evidence(other, leased.configuration(other))
    ]
