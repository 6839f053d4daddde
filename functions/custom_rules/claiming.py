"""Claiming the due steps of a custom rule: lease, steps, code and credentials. Nothing is evaluated here.

The rule's code runs in another function, which may only log; its answer is committed under this lease.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from functions.custom_rules import jobs
from functions.custom_rules.budget import reserve, why_spent
from functions.custom_rules.credentials import LENT_FOR, TooManyRuns, session_policy
from functions.custom_rules.jobs import Claimed, ClaimedStep
from functions.custom_rules.sources import Source, SourceRefused, source_of
from functions.decisions.settling import Ready, Waiting
from functions.evaluation.attaching import reconcile
from functions.evaluation.committing import commit
from functions.evaluation.last_evaluations import (
    end_if_all_has_arrived,
    finish_if_ended,
    last_step,
    sees_end,
)
from functions.evaluation.leased_group import LeasedGroup, current_record, wants
from functions.evaluation.other_runs import OtherRunRefused, refuse_strangers
from functions.evaluation.run_history import IndexedHistory
from functions.evaluation.shown_listing import attempts_of
from functions.evaluation.stepping import StepWalk
from functions.rule_groups import GroupGone
from functions.workflow_reply import reply
from functions.world import World
from smdebug.exceptions import SMDebugValueError
from smdebug.service.records import RuleConfiguration, RuleRecord, RunRecord, StepRecord
from smdebug.service.step_index.items import state_folder, state_key
from smdebug.trials.past.history import MemoryHistory


def claim(world: World, run: str, group: str, hinted_step: int) -> dict[str, Any]:
    """Return a job for the function that runs the rule, or a reply if no step is due."""
    record = world.index.run(run)
    if record is None:
        return reply(world, run, group, {})
    now = world.clock.now()
    try:
        held = world.index.groups.lease(run, group, now=now, seconds=world.settings.lease)
    except GroupGone:  # its rule was detached long ago
        return reply(world, run, group, {})
    leased = LeasedGroup(world, current_record(world, record, held), held, begun=now)
    reconcile(leased)
    walk = ClaimWalk(leased)
    more = walk.run(hinted_step) or walk.was_cut
    handed_over = _hand_over(leased, walk.steps, more=more)
    if handed_over is not None:
        return handed_over
    if not more:
        end_if_all_has_arrived(leased)
    if not more and not leased.waits:
        more = _has_end_to_evaluate(leased)  # with the next claim: this one has steps to commit
        if not more:
            finish_if_ended(leased)
    commit(leased)
    return reply(world, run, group, leased.group.outbox, more=more)


class ClaimWalk(StepWalk):
    """A walk over the due steps on which they are noted for the claim instead of evaluated."""

    reads_ahead = False  # a claim is short, and the next one would read the same again

    def __init__(self, leased: LeasedGroup):
        super().__init__(leased)
        self.steps: list[ClaimedStep] = []
        self.was_cut = False
        self._wanted = False

    def due(self) -> Iterator[Ready | Waiting]:
        """Yield the due steps; a step at which the function died is claimed alone."""
        for ready in super().due():
            rule = _active_rule(self.leased)
            asked = [step.step for step in self.steps if step.asked]
            if rule is not None and asked and rule.died_at in (asked[-1], ready.step.step):
                self.was_cut = True
                return
            yield ready

    def has_enough(self) -> bool:
        """Whether the claim is full."""
        asked = sum(step.asked for step in self.steps)
        return asked >= jobs.STEPS_A_CLAIM or super().has_enough()

    def ask_rules(self, step: StepRecord, *, late: bool) -> bool:
        """Note whether the rule wants the step."""
        rule = _active_rule(self.leased)
        self._wanted = rule is not None and wants(self.leased.configuration(rule), step.step)
        return True

    def advance(self, ready: Ready) -> None:
        """Add the step to the claim."""
        claimed = _claimed(
            self.leased,
            ready.step,
            passed=tuple(sorted(ready.passed)),
            lost=tuple(sorted(ready.lost)),
            late=ready.late,
            partly=ready.partly,
            asked=self._wanted,
        )
        self.steps.append(claimed)
        self._wanted = False
        super().advance(ready)


def _hand_over(leased: LeasedGroup, steps: list[ClaimedStep], *, more: bool) -> dict[str, Any] | None:
    """Return the job and the claim for the workflow; None if there is nothing to run."""
    rule = _active_rule(leased)
    asked = [step for step in steps if step.asked]
    at_end = not steps and not more and not leased.waits and _has_end_to_evaluate(leased)
    if at_end:
        asked = steps = _last_step_claimed(leased)
    if rule is None or not asked:
        return None
    configuration = leased.configuration(rule)
    try:
        refuse_strangers(leased.world.settings.tenants, leased.record.run, configuration)
        source = source_of(leased.world, leased.record.run, configuration, pinned=rule.source_digest)
        job = {**_job(leased, rule, configuration, source, asked), "at_end": at_end}
    except (OtherRunRefused, SourceRefused, TooManyRuns, SMDebugValueError) as problem:
        leased.fail_rule(rule, str(problem))
        return None
    reserved = reserve(leased.world, leased.record.run)
    if reserved is None:
        leased.stop_rule(rule, why_spent(leased.world, leased.record.run))
        return None
    claimed = Claimed(
        token=leased.group.token,
        rule=rule.id,
        training_run=leased.record.training_run,
        steps=tuple(steps),
        more=more,
        ended=leased.record.has_ended,
        source_digest=source.digest,
        at_end=at_end,
        reserved=reserved.to_dict(),
        checkpoints=leased.checkpoints(),
    )
    return {"function": source.function, "job": job, "claim": claimed.to_dict()}


def _active_rule(leased: LeasedGroup) -> RuleRecord | None:
    """Return the group's rule, if it is still evaluated."""
    return next((rule for rule in leased.group.rules if not rule.is_over), None)


def _has_end_to_evaluate(leased: LeasedGroup) -> bool:
    """Whether the rule is evaluated once more, at the end of the run, before it is finished."""
    rule = _active_rule(leased)
    return rule is not None and rule.asks_at_end and sees_end(leased, rule) and last_step(leased) is not None


# The steps of a claim


def _last_step_claimed(leased: LeasedGroup) -> list[ClaimedStep]:
    step = last_step(leased)
    if step is None:
        return []
    leased.bench.move_to(step)
    return [_claimed(leased, step, asked=True)]


def _claimed(leased: LeasedGroup, step: StepRecord, **more: Any) -> ClaimedStep:
    summary = leased.bench.summary
    return ClaimedStep(
        step=step.step,
        mode=summary.mode.name if summary else None,
        mode_step=summary.mode_step if summary else None,
        saved=leased.bench.saved,
        uploaded=step.uploaded,
        indexed=step.indexed,
        workers=tuple(sorted(step.complete_workers)),
        **more,
    )


# The job


def _job(
    leased: LeasedGroup,
    rule: RuleRecord,
    configuration: RuleConfiguration,
    source: Source,
    asked: list[ClaimedStep],
) -> dict[str, Any]:
    run, group, token = leased.record.run, leased.group.group, leased.group.token
    others = [place.removeprefix("s3://").strip("/") for place in configuration.other_trials]
    is_fetched = source.handed is not None and "text" not in source.handed
    policy = session_policy(
        run,
        state_folder(group, rule.id),
        others,
        source=source.handed["uri"] if source.handed and is_fetched else None,
        partition=leased.world.settings.partition,
    )
    credentials = leased.world.lender.lend(f"custom-rule-{token}", policy, seconds=LENT_FOR)
    return {
        "run": run,
        "group": group,
        "token": token,
        "location": leased.bench.storage.location,
        "rule": configuration.to_dict(),
        "source": source.handed,
        "state": _state_of(rule),
        "state_key": state_key(group, rule.id, token),
        "limits": {"work": jobs.WORK_SECONDS, "seconds": jobs.SECONDS},
        "about": _about(leased, asked, others),
        "credentials": dict(credentials),
    }


def _state_of(rule: RuleRecord) -> dict[str, str] | None:
    if rule.state_key:
        return {"key": rule.state_key}
    return {"inline": b64encode(rule.state).decode("ascii")} if rule.state else None


def _about(leased: LeasedGroup, asked: list[ClaimedStep], others: list[str]) -> str:
    """Return what the rule's function has to know of the runs, with as much history as fits."""
    world, last = leased.world, max(step.step for step in asked)
    of_others = [_other_run(world, place) for place in others]
    text = ""
    for steps, whole in [*((steps, True) for steps in jobs.HISTORY), (0, False)]:
        about = {
            **jobs.steps_with_workers(asked),
            **_view(world, leased.record, last, steps, whole=whole),
            "others": [
                {**other, **_view(world, record, last, steps, whole=whole)} if record is not None else other
                for other, record in of_others
            ],
        }
        text = jobs.packed(about)
        if len(text) <= jobs.LARGEST_PACKED:
            break
    return text


def _view(world: World, record: RunRecord, last: int, steps: int, *, whole: bool) -> dict[str, Any]:
    """Return a run up to a step. The rule's function reads what is left out itself."""
    history = IndexedHistory(world.index, record, world.open_run(record.run))
    recent = MemoryHistory.recent(history, last, steps).to_dict()
    if not whole:
        recent["layouts"] = [{**layout, "names": []} for layout in recent["layouts"]]
    return {
        "num_workers": record.num_workers or 1,
        "attempts": attempts_of(world.index, record),
        "collections": world.index.collections(record.run) if whole else None,
        "history": recent,
    }


def _other_run(world: World, place: str) -> tuple[dict[str, Any], RunRecord | None]:
    """Return a run that the rule compares with, and its record if the step index knows it."""
    other: dict[str, Any] = {"run": place, "location": world.open_run(place).location}
    record = world.index.run(place)
    if record is not None:
        other["ended"] = record.has_ended
        other["through"] = _last_complete_step(world, record)
    return other, record


def _last_complete_step(world: World, record: RunRecord) -> int:
    newest = world.index.steps(record.run, record.training_run, limit=50, newest_first=True)
    complete = (step.step for step in newest if record.is_whole(step))
    return next(complete, -1)
