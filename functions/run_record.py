"""Changing the record of a run, and reporting problems with the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from functions.decisions.run_events import run_entry
from functions.world import World
from smdebug.amounts import counted
from smdebug.files.collections_file import LostSteps
from smdebug.service.records import RunRecord

TWO_TRAININGS = "training"  # the subject of what is wrong if two write to one place

UNREAD_STEPS = "steps"  # the subject of steps whose files are damaged or gone
LOST_STEPS = "lost steps"  # the subject of steps that a worker could not write


def change(world: World, record: RunRecord, how: Callable[[RunRecord], RunRecord | None]) -> RunRecord:
    """Change the record of a run, also while others change it; return it as written."""
    while True:
        changed = how(record)
        if changed is None or changed == record:
            return record
        done = world.index.change_run(record, changed)
        if done is not None:
            return done
        record = world.index.run(record.run) or record


def in_trouble(world: World, record: RunRecord, about: str, problem: str) -> RunRecord:
    """Report a problem with the run's files, once; an empty one removes what was reported before."""
    now = world.clock.now()

    def troubled(known: RunRecord) -> RunRecord:
        if known.troubles.get(about, "") == problem:
            return known
        now_known = known.with_trouble(about, problem)
        return with_news(now_known, problem, now) if problem else now_known

    return change(world, record, troubled)


def report_two_trainings(world: World, record: RunRecord, earlier: int) -> RunRecord:
    """Report that an earlier attempt saves although a later one has begun: both are running."""
    return in_trouble(
        world,
        record,
        TWO_TRAININGS,
        f"Two trainings write to {record.location} at once: attempt {earlier} has saved a step after attempt "
        f"{record.training_run} had begun. Their steps overwrite each other. Stop one of them, and give each "
        "training its own prefix.",
    )


def report_lost_steps(world: World, record: RunRecord, worker: str, lost: LostSteps) -> RunRecord:
    """Report that a worker could not write some of its steps: no rule will evaluate them."""
    if LOST_STEPS in record.troubles:
        return record  # of another worker, or of this one
    how_many = "At least " if lost.last is None else ""
    return in_trouble(
        world,
        record,
        LOST_STEPS,
        f"{how_many}{counted(lost.count, 'step')} of {worker} could not be written, from step {lost.first} "
        f"on: {lost.reason}. No rule evaluates them.",
    )


def with_news(record: RunRecord, cause: str, now: float) -> RunRecord:
    """Return the run with an event about its state in its outbox."""
    return replace(record, outbox={**record.outbox, **dict([run_entry(record, cause, now)])})


def list_again(world: World, record: RunRecord) -> None:
    """Put the run on the list of watched runs, and keep its items until it is finished."""
    world.index.list_run(record.run, world.clock.now())
    known = world.index.run(record.run)
    if known is not None and known.expires is not None:
        world.index.keep(known)
