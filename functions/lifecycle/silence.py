"""Watching for silence: waking up when a run could have fallen silent, and acting if it has."""

from __future__ import annotations

from dataclasses import replace

from functions.decisions.silence import SilenceLimits, Stage, assess, checkpoints
from functions.lifecycle.announced_end import announce_end
from functions.run_record import change, with_news
from functions.workflow_start import start_evaluation
from functions.world import World
from smdebug.service.records import RunRecord, RunState


def watch(world: World, run: str) -> None:
    """Act on the run's silence, if it is silent, and schedule the next check."""
    record = world.index.run(run)
    if record is None or record.has_ended:
        return
    now = world.clock.now()
    newest = world.index.steps(run, record.training_run, limit=1, newest_first=True)
    silence = assess(record, newest, _limits_of(world, run), now=now)
    if silence.stage is Stage.ENDED:
        announce_end(world, run, f"nothing has arrived for {silence.seconds:.0f} s")
        return
    world.schedules.wake(run, at=silence.check_at)
    if silence.stage is Stage.SILENT:
        _begin_silence(world, record, silence.since)
    if silence.reached is not None:
        attempt = f"silent-{silence.since:.0f}-{silence.reached:.0f}"
        start_evaluation(world, run, 0, attempt=attempt)


def wake_in_time(world: World, run: str) -> None:
    """Schedule the first check: as soon as the run could have been silent for long enough."""
    first = checkpoints(_limits_of(world, run))[0]
    world.schedules.wake(run, at=world.clock.now() + first)


def end_silence(world: World, record: RunRecord) -> RunRecord:
    """Set a silent run to running, and report it."""
    now = world.clock.now()

    def running(known: RunRecord) -> RunRecord | None:
        if known.state is not RunState.SILENT:
            return None
        return with_news(replace(known, state=RunState.RUNNING), f"awake-{now:.0f}", now)

    return change(world, record, running)


def _begin_silence(world: World, record: RunRecord, since: float) -> None:
    """Set a running run to silent, and report it."""
    now = world.clock.now()

    def silent(known: RunRecord) -> RunRecord | None:
        if known.state is not RunState.RUNNING:
            return None
        return with_news(replace(known, state=RunState.SILENT), f"silent-{since:.0f}", now)

    change(world, record, silent)


def _limits_of(world: World, run: str) -> SilenceLimits:
    return SilenceLimits(
        tuple(world.index.rules(run).wanted),
        stall_timeout=world.settings.stall_timeout,
        silence_timeout=world.settings.silence_timeout,
    )
