"""Claiming the due steps of a custom rule: lease, steps, code and credentials. Nothing is evaluated here.

The rule's code runs elsewhere, where it may only log; what it answers is committed under this lease.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from functions.custom_rules import jobs
from functions.custom_rules.credentials import LENT_FOR, TooManyRuns, session_policy
from functions.custom_rules.jobs import Claimed, ClaimedStep
from functions.custom_rules.sources import Source, SourceRefused, source_of
from functions.decisions.rule_lifecycle import fail
from functions.decisions.settling import Ready, Waiting
from functions.evaluation.built_in import Evaluation, as_new_as, wants
from functions.evaluation.run_history import IndexedHistory
from functions.telemetry import metrics
from functions.workflow_reply import answer
from functions.world import World
from smdebug.exceptions import SMDebugValueError
from smdebug.service.items import state_folder, state_key
from smdebug.service.records import (
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RunRecord,
    StepRecord,
)
from smdebug.trials.history import MemoryHistory


def claim(world: World, run: str, group: str, hinted_step: int) -> dict[str, Any]:
    """A job for the function that runs the rule, and what to commit; or an answer, if none is due."""
    record = world.index.run(run)
    if record is None:
        return answer(world, run, group, {})
    now = world.clock.now()
    held = world.index.lease(run, group, now=now, seconds=world.settings.lease)
    work = Claiming(world, as_new_as(world, record, held), held, begun=now)
    work.reconcile()
    more = work.do_what_is_due(hinted_step) or work.was_cut
    handed = work.hand_over(more=more)
    if handed is not None:
        return handed
    if not more and not work.waits:
        more = work.has_end_to_ask()  # with the next claim: this one has steps to commit
        if not more:
            work.finish_if_ended()
    work.commit()
    return answer(world, run, group, {**held.outbox, **work.outbox}, more=more)


class Claiming(Evaluation):
    """The same walk over the due steps as an evaluation's, on which they are noted instead of looked at."""

    def __init__(self, world: World, record: RunRecord, held: GroupRecord, *, begun: float):
        super().__init__(world, record, held, begun=begun)
        self.was_cut = False
        self._steps: list[ClaimedStep] = []
        self._asks = False

    def hand_over(self, *, more: bool) -> dict[str, Any] | None:
        """What the state machine is told; None if there is nothing to run."""
        rule = self._rule
        asked = [one for one in self._steps if one.asked]
        at_end = not self._steps and not more and not self.waits and self.has_end_to_ask()
        if at_end:
            asked = self._steps = self._last_step_claimed()
        if rule is None or not asked:
            return None
        configuration = self._configuration(rule)
        try:
            source = source_of(
                self.world, self.record.run, configuration, pinned=rule.source_digest
            )
            job = {**self._job(rule, configuration, source, asked), "at_end": at_end}
        except (SourceRefused, TooManyRuns, SMDebugValueError) as problem:
            self._take(fail(rule, configuration, str(problem), self._moment()))
            metrics({"RuleErrors": (1, "Count")})
            return None
        claimed = Claimed(
            token=self.group.token,
            rule=rule.id,
            training_run=self.record.training_run,
            steps=tuple(self._steps),
            more=more,
            ended=self.record.has_ended,
            source_digest=source.digest,
            at_end=at_end,
        )
        return {"function": source.function, "job": job, "claim": claimed.to_dict()}

    def has_end_to_ask(self) -> bool:
        """Is the rule to be asked about the end of the run, before it is finished?"""
        rule = self._rule
        return (
            rule is not None
            and rule.asks_at_end
            and self.is_to_see_the_end(rule)
            and self.last_step() is not None
        )

    def _last_step_claimed(self) -> list[ClaimedStep]:
        step = self.last_step()
        if step is None:
            return []
        self.bench.look_at(step)
        return [self._claimed(step, asked=True)]

    # Which steps

    @property
    def _rule(self) -> RuleRecord | None:
        """The one that this group has, if it still looks."""
        return next((rule for rule in self.group.rules if not rule.status.is_final), None)

    def _due(self) -> Iterator[Ready | Waiting]:
        """A step at which the function died is looked at alone."""
        for verdict in super()._due():
            rule, asked = self._rule, [one.step for one in self._steps if one.asked]
            if rule is not None and asked and rule.died_at in (asked[-1], verdict.step.step):
                self.was_cut = True
                return
            yield verdict

    def _has_enough(self) -> bool:
        asked = sum(one.asked for one in self._steps)
        return asked >= jobs.STEPS_A_CLAIM or super()._has_enough()

    def _ask_all(self, step: StepRecord, *, late: bool) -> bool:
        rule = self._rule
        self._asks = rule is not None and wants(self._configuration(rule), step.step)
        return True

    def _advance(self, step: StepRecord, due: Ready | None) -> None:
        claimed = self._claimed(
            step,
            passed=tuple(sorted(due.passed)) if due else (),
            missing=due.missing if due else None,
            late=due is None,
            asked=self._asks,
        )
        self._steps.append(claimed)
        self._asks = False
        super()._advance(step, due)

    def _claimed(self, step: StepRecord, **more: Any) -> ClaimedStep:
        told = self.bench.summary
        return ClaimedStep(
            step=step.step,
            mode=told.mode.name if told else None,
            mode_step=told.mode_step if told else None,
            saved=self.bench.saved,
            uploaded=step.uploaded,
            indexed=step.indexed,
            workers=tuple(sorted(step.complete_workers)),
            **more,
        )

    # What is handed over

    def _job(
        self,
        rule: RuleRecord,
        configuration: RuleConfiguration,
        source: Source,
        asked: list[ClaimedStep],
    ) -> dict[str, Any]:
        run, group = self.record.run, self.group.group
        others = [one.removeprefix("s3://").strip("/") for one in configuration.other_trials]
        too_long = source.told if source.told and "text" not in source.told else None
        policy = session_policy(
            run,
            state_folder(group, rule.id),
            others,
            source=too_long["uri"] if too_long else None,
            partition=self.world.settings.partition,
        )
        state: dict[str, str] | None = None
        if rule.state_key:
            state = {"key": rule.state_key}
        elif rule.state:
            state = {"inline": b64encode(rule.state).decode("ascii")}
        return {
            "run": run,
            "group": group,
            "token": self.group.token,
            "location": self.bench.storage.location,
            "rule": configuration.to_dict(),
            "source": source.told,
            "state": state,
            "state_key": state_key(group, rule.id, self.group.token),
            "limits": {"work": jobs.WORK_SECONDS, "seconds": jobs.SECONDS},
            "about": self._about(asked, others),
            "credentials": dict(
                self.world.lender.lend(f"custom-rule-{self.group.token}", policy, seconds=LENT_FOR)
            ),
        }

    def _about(self, asked: list[ClaimedStep], others: list[str]) -> str:
        """What the rule's function has to know of the runs, as much of it as there is room for."""
        last = max(one.step for one in asked)
        of_others = [self._other(place) for place in others]
        text = ""
        for steps, whole in [*((steps, True) for steps in jobs.HISTORY), (0, False)]:
            about = {
                **jobs.steps_told(asked),
                **self._run(self.record, last, steps, whole=whole),
                "others": [
                    {**told, **self._run(record, last, steps, whole=whole)}
                    if record is not None
                    else told
                    for told, record in of_others
                ],
            }
            text = jobs.packed(about)
            if len(text) <= jobs.LARGEST_PACKED:
                break
        return text

    def _run(self, record: RunRecord, last: int, steps: int, *, whole: bool) -> dict[str, Any]:
        """A run up to a step. What is left out, the function reads itself: who wants more pays for it."""
        history = IndexedHistory(self.world.index, record)
        recent = MemoryHistory.recent(history, last, steps).to_dict()
        if not whole:
            recent["layouts"] = [{**layout, "names": []} for layout in recent["layouts"]]
        return {
            "num_workers": record.num_workers or 1,
            "collections": self.world.index.collections(record.run) if whole else None,
            "history": recent,
        }

    def _other(self, place: str) -> tuple[dict[str, Any], RunRecord | None]:
        """A run that the rule compares with, and how far it has come, if the step index knows it."""
        told: dict[str, Any] = {
            "run": place,
            "location": self.world.open_run(place).location,
        }
        record = self.world.index.run(place)
        if record is None:
            return told, None
        told["ended"] = record.has_ended
        told["through"] = self._through(record)
        return told, record

    def _through(self, record: RunRecord) -> int:
        """The last step of another run that is complete."""
        newest = self.world.index.steps(
            record.run, record.training_run, limit=50, newest_first=True
        )
        return next((one.step for one in newest if one.is_complete(record.num_workers)), -1)
