"""The last thing that is said of a run: what all its rules have come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from functions.answers import answer
from functions.decisions.events import old_state_change, run_entry, summary_of
from functions.intake import change
from functions.starting import leave_check
from functions.world import World
from smdebug.service.records import BUILT_IN, RuleConfiguration, RunRecord, RunState


def finish_run(world: World, run: str) -> dict[str, Any]:
    """Publish the summary if every rule is done; otherwise somebody will look again."""
    record = world.index.run(run)
    if record is None:
        return answer(world, run, None, {})
    groups = world.index.groups(run)
    done = all(group.finished and group.training_run == record.training_run for group in groups)
    if record.state is RunState.ENDED and not done:
        leave_check(world, record, after=60)
    elif record.state is RunState.ENDED:
        rules = world.index.rules(run)
        known = {one.id: one for one in (*rules.detached, *rules.wanted)}
        told = [
            (known.get(rule.id) or RuleConfiguration(rule.name, rule.name), rule)
            for group in groups
            for rule in group.rules
        ]
        cursor = max((group.cursor for group in groups if group.group == BUILT_IN), default=-1)
        steps = world.index.steps(run, record.training_run)
        complete = sum(step.is_complete(record.num_workers) for step in steps)
        summary = summary_of(
            told,
            steps=complete,
            last_step=steps[-1].step if steps else None,
            not_evaluated=len(steps) - complete,
        )
        now = world.clock.now()

        def finished(known: RunRecord) -> RunRecord | None:
            if known.state is not RunState.ENDED:
                return None
            after = replace(known, state=RunState.FINISHED)
            entries = [run_entry(after, f"finished-{cursor}-{complete}", now, summary=summary)]
            old = old_state_change(after, [rule for _, rule in told], now)
            entries.append((old.id, old.as_item()))
            return replace(after, outbox={**known.outbox, **dict(entries)})

        record = change(world, record, finished)
    return answer(world, run, None, record.outbox)
