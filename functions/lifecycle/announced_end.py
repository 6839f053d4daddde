"""The end of a run, announced by its end marker, its SageMaker job, or a long silence."""

from __future__ import annotations

from dataclasses import replace

from functions.decisions.messages import JobEnded
from functions.run_record import change, with_news
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.logger import get_logger
from smdebug.service.records import RunRecord, RunState, RunVerdict


def announce_end(world: World, run: str, reason: str, *, again: bool = False) -> None:
    """Set the run to ending and have it finished after the grace period for its last files."""
    now = world.clock.now()
    record = world.index.run(run)
    if record is None or (record.has_ended and not again):
        return
    change(world, record, lambda known: replace(known, state=RunState.ENDING, ended_at=now))
    get_logger().info("%s has ended: %s", run, reason)
    world.checks.leave({"finish": run}, after_seconds=world.settings.end_grace)


def abandon(world: World, record: RunRecord) -> RunRecord:
    """Close a run of which nothing has arrived for as long as steps are kept."""
    now = world.clock.now()
    problem = (
        "Nothing has arrived for as long as the index keeps steps, and the run was not finished: it was "
        "closed as abandoned. See the logs of the functions."
    )

    def closed(known: RunRecord) -> RunRecord | None:
        if known.state is RunState.FINISHED:
            return None
        after = replace(
            known.with_trouble("abandoned", problem),
            state=RunState.FINISHED,
            ended_at=known.ended_at or now,
            verdict=RunVerdict.INCOMPLETE.value,
        )
        return with_news(after, "abandoned", now)

    record = change(world, record, closed)
    start_evaluation(world, record.run, 0, attempt="abandoned")
    return record


def job_ended(world: World, ended: JobEnded) -> None:
    """End the runs of a SageMaker job that has ended: they write no end marker."""
    for run in world.index.runs_of_job(ended.job):
        announce_end(world, run, f"the training job {ended.job} is {ended.status}")
