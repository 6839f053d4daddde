"""Starting the evaluation of a run, so that it happens even if the start gets lost."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from functions.world import World
from smdebug.service.records import RunRecord

RUN_ITSELF = "run"


def start_evaluation(
    world: World, run: str, step: int, *, attempt: str = "", evaluate: bool = True
) -> None:
    """Have all groups of rules look at a step of the run, and have somebody check later that they did.

    A run that has ended is finished after it, as often as there is something new. Without `evaluate`
    nothing else is done.

    The record of the run is read here, after what made the step complete was written: whoever checks
    takes the mark of the waiting check away before looking, so either this sees no mark and leaves a
    check, or that check sees the step.
    """
    record = world.index.run(run)
    if record is None:
        return
    groups = [told_of_group(world, group) for group in record.groups if evaluate]
    finish = record.has_ended
    if record.outbox and evaluate:
        groups.append({"group": RUN_ITSELF, "kind": "builtin"})
    request = {"run": run, "step": step, "groups": groups, "finish": finish}
    world.workflow.start(name_of(run, step, attempt, finish=finish), request)
    leave_check(world, record)


def leave_check(world: World, record: RunRecord, *, after: float | None = None) -> None:
    """Have the run checked after a while, unless a check is waiting already."""
    now = world.clock.now()
    delay = int(min(max(1, world.settings.check_delay if after is None else after), 900))
    if now < record.check_until <= now + delay:
        return
    world.checks.leave({"check": record.run}, after_seconds=delay)
    world.index.note_check(record.run, now + delay)


def told_of_group(world: World, group: str) -> dict[str, Any]:
    """What the workflow has to know of a group of rules."""
    return {"group": group, "kind": "custom" if group.startswith("custom-") else "builtin"}


def name_of(run: str, step: int, attempt: str, *, finish: bool = False) -> str:
    """The name of an execution: the same for the same cause."""
    cause = f"{run}\n{step}\n{attempt}\n{finish}"
    return f"{step}-{sha256(cause.encode()).hexdigest()[:40]}"
