"""The end of a run, announced by its end marker, its SageMaker job, or a long silence."""

from __future__ import annotations

from dataclasses import replace

from functions.decisions.messages import JobEnded
from functions.run_record import change
from functions.world import World
from smdebug.logger import get_logger
from smdebug.service.records import RunState


def announce_end(world: World, run: str, reason: str, *, again: bool = False) -> None:
    """Set the run to ending and have it finished after the grace period for its last files."""
    now = world.clock.now()
    record = world.index.run(run)
    if record is None or (record.has_ended and not again):
        return
    change(world, record, lambda known: replace(known, state=RunState.ENDING, ended_at=now))
    get_logger().info("%s has ended: %s", run, reason)
    world.checks.leave({"finish": run}, after_seconds=world.settings.end_grace)


def job_ended(world: World, ended: JobEnded) -> None:
    """End the runs of a SageMaker job that has ended: they write no end marker."""
    for run in world.index.runs_of_job(ended.job):
        announce_end(world, run, f"the training job {ended.job} is {ended.status}")
