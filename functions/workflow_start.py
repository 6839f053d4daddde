"""Starting the evaluation of a run, so that it happens even if the start gets lost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from functions.decisions.configuration import is_custom
from functions.world import World
from smdebug.service.records import RunRecord

RUN_ITSELF = "run"


def start_evaluation(
    world: World,
    run: str,
    step: int,
    *,
    complete: Sequence[int] = (),
    attempt: str = "",
    only: Collection[str] | None = None,
) -> None:
    """Start the evaluation of a step by all groups of rules, and leave a check that it happened.

    A run that has ended is finished afterwards, as often as there is something new. `only` names the
    groups that evaluate: without any of them the run is only finished.

    The execution has the name of its cause, which a standard workflow accepts once: the training, the steps
    that are `complete` now, and the attempt to deliver. The step alone would not do. A step before it that
    arrives later, and the same step of a resumed training, would start nothing.

    The run's record is read here, after the step was written as complete. A check removes its mark from
    the record before it reads the steps: so either no mark is seen here and a check is left, or that
    check sees the step.
    """
    record = world.index.run(run)
    if record is None:
        return
    names = [*record.groups, *([RUN_ITSELF] if record.outbox else [])]
    groups = [workflow_group(group) for group in names if only is None or group in only]
    finish = record.is_ending and not record.is_refused  # nothing of that place is summed up
    until = datetime.fromtimestamp(world.clock.now() + world.settings.execution, UTC)
    request = {
        "run": run,
        "step": step,
        "groups": groups,
        "finish": finish,
        "until": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    cause = f"{record.training_run}\n{','.join(map(str, complete))}\n{attempt}"
    world.workflow.start(name_of(run, step, cause, finish=finish), request)
    leave_check(world, record)


def leave_check(world: World, record: RunRecord, *, after: float | None = None) -> None:
    """Leave a check of the run for later, unless one is waiting that comes no later."""
    now = world.clock.now()
    delay = int(min(max(1, world.settings.check_delay if after is None else after), 900))
    if now < record.check_until <= now + delay:
        return
    world.checks.leave({"check": record.run}, after_seconds=delay)
    world.index.note_check(record.run, now + delay, known=record.check_until, now=now)


def workflow_group(group: str) -> dict[str, Any]:
    """Return a group of rules as the workflow takes it."""
    return {"group": group, "kind": "custom" if is_custom(group) else "builtin"}


def name_of(run: str, step: int, cause: str, *, finish: bool = False) -> str:
    """Return the name of an execution: the same for the same cause."""
    whole = f"{run}\n{step}\n{cause}\n{finish}"
    return f"{step}-{sha256(whole.encode()).hexdigest()[:40]}"
