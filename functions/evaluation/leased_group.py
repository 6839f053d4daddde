"""A group of rules under lease: what was read when the lease began, and every change until its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.decisions.detail_types import CONDITION_MET
from functions.decisions.outbox import Moment, OutboxEntry, Overflow
from functions.decisions.rule_lifecycle import Transition, fail, stop
from functions.evaluation.rule_bench import RuleBench
from functions.run_record import UNREAD_STEPS, in_trouble
from functions.telemetry import log, metrics
from functions.workflow_start import leave_check
from functions.world import World
from smdebug.exceptions import SMDebugError
from smdebug.files.notes.checkpoints import Checkpoint
from smdebug.rules.outcomes import Found, Outcome
from smdebug.service.records import (
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RunRecord,
    StepRecord,
)
from smdebug.trials.checkpoint_reading import read_checkpoints

RETRY_AFTER = 60  # seconds, for a run that is behind or cannot be read


class LeasedGroup:
    """A group of rules on one run, for as long as one lease lasts."""

    def __init__(self, world: World, record: RunRecord, group: GroupRecord, *, begun: float):
        self.world = world
        self.record = record
        self.group = group
        self.begun = begun
        self.deaths = group.deaths - 1  # the index counts this lease as a death until it commits
        self.bench = RuleBench(world, record)
        self.configurations: dict[str, RuleConfiguration] = {}
        self.outbox: dict[str, dict[str, str]] = {}
        self.findings: list[OutboxEntry] = []
        self.overflows: list[Overflow] = []
        self.evaluated = 0
        self.waits = False  # for another run that may still catch up
        self.claimed_checkpoints: tuple[Checkpoint, ...] | None = None  # read by the claim, if not here

    def configuration(self, rule: RuleRecord) -> RuleConfiguration:
        """Return the rule's configuration; only its name if none is known now."""
        return self.configurations.get(rule.id) or RuleConfiguration(rule.name, rule.name)

    def rule(self, rule_id: str) -> RuleRecord | None:
        """Return the rule of that id, or None if the group has none."""
        return next((rule for rule in self.group.rules if rule.id == rule_id), None)

    def apply(self, transition: Transition) -> None:
        """Replace the rule by its new record and queue the events to publish."""
        self.group = self.group.with_rule(transition.rule)
        for entry in transition.outbox:
            self.outbox[entry.id] = entry.as_item()
            if entry.detail_type == CONDITION_MET:
                self.findings.append(entry)
            if entry.overflow is not None:
                self.overflows.append(entry.overflow)

    def fail_rule(self, rule: RuleRecord, problem: str) -> None:
        """Set the rule to Error and count it for the alarm."""
        self.apply(fail(rule, self.configuration(rule), problem, self.moment()))
        metrics({"RuleErrors": (1, "Count")})

    def checkpoints_before(self, rule: RuleRecord, outcome: Outcome) -> tuple[Checkpoint, ...]:
        """Return where the training has saved its weights, if the outcome opens an issue of the rule."""
        if rule.has_open_issue or not isinstance(outcome, Found):
            return ()
        return self.checkpoints() if self.claimed_checkpoints is None else self.claimed_checkpoints

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return where the training has saved its weights; nothing if that cannot be read."""
        try:
            return tuple(read_checkpoints(self.bench.storage))
        except SMDebugError as problem:  # the finding is worth more than the advice
            log("The checkpoints of the run cannot be read", run=self.record.run, problem=str(problem))
            return ()

    def stop_rule(self, rule: RuleRecord, reason: str) -> None:
        """Stop a rule for good, as its run has spent the budget of custom rules."""
        self.apply(stop(replace(rule, out_of_budget=True), self.configuration(rule), reason, self.moment()))
        metrics({"RulesOutOfBudget": (1, "Count")})

    def report(self, problem: str) -> None:
        """Report a problem with the files of the run's steps, once; evaluation continues."""
        self.keep(in_trouble(self.world, self.record, UNREAD_STEPS, problem))

    def keep(self, known: RunRecord) -> None:
        """Continue with the run's record as it is known now.

        If the training was resumed meanwhile, these steps and their events are still those of the
        attempt that this evaluation began with: only the groups of rules are taken over.
        """
        if known.training_run != self.record.training_run:
            known = replace(self.record, groups=known.groups)
        self.record = known

    def wait(self) -> None:
        """Schedule another check of the run, as a rule cannot continue yet."""
        self.waits = True
        leave_check(self.world, self.record, after=RETRY_AFTER)

    def moment(self, step: StepRecord | None = None, *, late: bool = False, occasion: str = "") -> Moment:
        """Return the moment of evaluating `step`, or of the cursor if no step is given."""
        about: Mapping[str, Any] = {}
        if step is not None:
            summary = self.bench.summary
            about = {
                "mode": summary.mode.name if summary else step.mode,
                "mode_step": summary.mode_step if summary else step.mode_step,
                "saved": self.bench.saved,
                "uploaded": step.uploaded or None,
                "indexed": step.indexed or None,
                "late": late,
                "occasion": occasion,
            }
        return Moment.of(
            self.record,
            self.group.cursor if step is None else step.step,
            evaluated=self.world.clock.now(),
            group=self.group.group,
            **about,
        )


def current_record(world: World, record: RunRecord, group: GroupRecord) -> RunRecord:
    """Return the run's record, read again if the group has seen a later attempt than it names.

    The record may have been read long before the lease was taken.
    """
    if group.training_run <= record.training_run:
        return record
    return world.index.run(record.run) or record


def wants(configuration: RuleConfiguration, step: int) -> bool:
    """Whether the step lies between the rule's `start_step` and `end_step`."""
    end = configuration.end_step
    return configuration.start_step <= step and (end is None or step < end)
