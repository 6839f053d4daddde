"""Committing what an evaluation changed."""

from __future__ import annotations

from dataclasses import replace

from functions.decisions.detail_types import STATUS_CHANGE
from functions.decisions.rule_lifecycle import fail
from functions.decisions.run_events import old_state_change
from functions.evaluation.leased_group import LeasedGroup
from functions.evaluation.rule_bench import StateTooLarge
from functions.telemetry import log
from smdebug.service.records import RuleRecord


def commit(leased: LeasedGroup) -> None:
    """Write all changes and end the lease, in one write; `LeaseLost` if another process has taken it over.

    States and findings are written before, under names that no other lease uses.
    """
    _save_states(leased)
    for overflow in leased.overflows:
        leased.bench.write(overflow.key, overflow.body)
    for finding in leased.findings:
        leased.world.index.put_finding(leased.record.run, finding.detail["step"], finding.id, finding.detail)
    if any(entry["detail_type"] == STATUS_CHANGE for entry in leased.outbox.values()):
        event = old_state_change(leased.record, _all_rules(leased), leased.world.clock.now())
        leased.outbox[event.id] = event.as_item()
    batch = leased.world.index.groups.commit(leased.record.run, leased.group, leased.outbox)
    leased.group = replace(leased.group, outbox={**leased.group.outbox, **batch})
    if leased.evaluated:
        log(
            "Evaluated",
            run=leased.record.run,
            group=leased.group.group,
            steps=leased.evaluated,
            through=leased.group.cursor,
            findings=len(leased.findings),
        )


def _save_states(leased: LeasedGroup) -> None:
    for rule in leased.group.rules:
        try:
            leased.group = leased.group.with_rule(leased.bench.remembered(rule, leased.group))
        except StateTooLarge as problem:
            failed = fail(rule, leased.configuration(rule), problem.problem, leased.moment())
            leased.apply(failed)


def _all_rules(leased: LeasedGroup) -> list[RuleRecord]:
    """Return the rules of all groups of the run."""
    rules = list(leased.group.rules)
    if len(leased.record.groups) > 1:
        for group in leased.world.index.groups.of_run(leased.record):
            rules += group.rules if group.group != leased.group.group else ()
    return rules
