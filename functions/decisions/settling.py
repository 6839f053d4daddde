"""Which steps are due, in which order, and for which one has to wait.

A worker's index file names the step that this worker saved before. Following that from a complete step
back to what was evaluated already shows every step in between that anybody saved: the step is due once
all of those have shown themselves. What some workers skipped never becomes complete, and is passed over.
Runs of the old library do not tell: there, order is the order of completion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from smdebug.service.records import GroupRecord, StepRecord

#: The step a worker saved before, as its index file of a step says; None: that one was its first.
PreviousStep = Callable[[int, str], int | None]


@dataclass(frozen=True)
class Settling:
    """What decides how long a step may be waited for."""

    num_workers: int
    cursor: int
    tells_previous_steps: bool
    ended: bool  # nothing is on its way any more
    timeout: float
    now: float


class Ready(NamedTuple):
    """A step that is due, and the ones before it that are given up.

    Below `missing`, if there is such a step, nobody can tell which those are: only its own files could.
    """

    step: StepRecord
    passed: frozenset[int] = frozenset()
    missing: int | None = None


class Waiting(NamedTuple):
    """A step that is complete and waits for another one, until then at the latest."""

    step: StepRecord
    missing: int
    until: float


def next_step(
    steps: Collection[StepRecord], settling: Settling, previous: PreviousStep
) -> Ready | Waiting | None:
    """The first complete step after the cursor: is it due? None if none is complete.

    `steps` are those after the cursor of which anything has arrived.
    """
    known = {step.step: step for step in steps if step.step > settling.cursor}
    complete = sorted(
        number for number, step in known.items() if step.is_complete(settling.num_workers)
    )
    if not complete:
        return None
    step = known[complete[0]]
    between, missing = _between(step, known, settling, previous)
    until = step.indexed + settling.timeout
    if missing and not settling.ended and settling.now < until:
        return Waiting(step, min(missing), until)
    return Ready(step, between, max(missing, default=None))


def _between(
    step: StepRecord, known: dict[int, StepRecord], settling: Settling, previous: PreviousStep
) -> tuple[frozenset[int], frozenset[int]]:
    """The steps since the cursor that somebody saved before this one; and which have yet to come."""
    between: set[int] = set()
    missing: set[int] = set()
    if not settling.tells_previous_steps:
        return frozenset(), frozenset()
    for worker in sorted(step.complete_workers):
        at = previous(step.step, worker)
        while at is not None and settling.cursor < at < step.step:
            between.add(at)
            seen = known.get(at)
            if seen is None or worker not in seen.complete_workers:
                missing.add(at)
                break
            before = previous(at, worker)
            if before is not None and before >= at:  # no order at all: do not follow it
                break
            at = before
    return frozenset(between), frozenset(missing)


def late_steps(
    steps: Collection[StepRecord],
    settling: Settling,
    *,
    group: GroupRecord,
) -> list[StepRecord]:
    """Those of the steps up to the cursor that have become complete only after it had passed them."""
    late = []
    for step in sorted(steps, key=lambda record: record.step):
        if step.step > settling.cursor or not step.is_complete(settling.num_workers):
            continue
        if step.step in group.late_done:
            continue
        if settling.tells_previous_steps:
            evaluated = not group.gave_up(step.step)
        else:
            evaluated = group.group in step.evaluated_by
        if not evaluated:
            late.append(step)
    return late


def never_came(
    steps: Collection[StepRecord], num_workers: int | None, *, timeout: float, now: float
) -> str:
    """What is wrong with a run whose first step has been waiting for so long; "" if nothing is.

    The sentence is the same for as long as the same is missing, so it is told once.
    """
    waiting = [
        step
        for step in sorted(steps, key=lambda record: record.step)
        if not step.is_complete(num_workers) and now - step.indexed >= timeout
    ]
    if not waiting:
        return ""
    first = waiting[0]
    if num_workers is None:
        return (
            f"Step {first.step} was saved, and no collections file has come that says how many workers "
            "there are: none of its rules can look at any step. Does the training write collections/?"
        )
    there = first.complete_workers
    names = [f"worker_{number}" for number in range(num_workers)]
    missing = [name for name in names if name not in there]
    if there - set(names):  # devices have names of their own
        missing = [f"{num_workers - len(there)} of them"]
    shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
    return (
        f"Step {first.step} was saved by {len(there)} of {num_workers} workers, and for {timeout:.0f} s "
        f"nothing more of it has come: {shown} is missing. A step is looked at when all have saved it; "
        "what never comes is passed over at a later step, or at the run's end."
    )
