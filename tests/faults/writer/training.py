"""The trainings of a schedule under real hooks, and the truth: which values were handed over when."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np

import smdebug
from smdebug import SaveConfig
from tests.faults.writer.bucket import FaultyBucket
from tests.faults.writer.calls import Calls
from tests.faults.writer.folder import FaultyFolder
from tests.faults.writer.schedule import Schedule, Worker
from tests.faults.writer.substitutes import substituted
from tests.faults.writer.values import Values, values_of
from tests.faults.writer.world import Process, World

Place = FaultyFolder | FaultyBucket


@dataclass
class Handed:
    """What one process handed to its hook."""

    process: Process
    worker: Worker
    steps: dict[int, Values] = field(default_factory=dict)
    """The values of each step that ended."""
    begun: dict[int, Values] = field(default_factory=dict)
    """The values of each step that began, all of which may be visible."""
    late: dict[int, Values] = field(default_factory=dict)
    ended_at: dict[int, float] = field(default_factory=dict)
    trained: int = 0
    longest_wait: float = 0.0
    closing_from: float | None = None
    closing_took: float | None = None
    was_refused: bool = False


@dataclass
class Attempt:
    """One attempt of a run, with all its processes."""

    number: int
    schedule: Schedule
    world: World
    calls: Calls
    handed: list[Handed]


@contextmanager
def place_of(schedule: Schedule) -> Iterator[Place]:
    """Yield an empty place of the schedule's kind."""
    if schedule.place == "bucket":
        yield FaultyBucket()
        return
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="smdebug-faults-", dir=memory if memory.is_dir() else None)
    try:
        yield FaultyFolder(str(Path(folder, "run")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def train(schedule: Schedule, place: Place, number: int = 0, *, keeps_history: bool = False) -> Attempt:
    """Run the schedule's processes to their end."""
    world = World(schedule.seed * 31 + number, keeps_history=keeps_history)
    attempt = Attempt(number, schedule, world, Calls(schedule.seed), [])
    environment = {
        "SMDEBUG_WRITE_QUEUE_MB": f"{schedule.queue_mb:g}",
        "SMDEBUG_WRITE_PATIENCE_SECONDS": f"{schedule.patience:g}",
    }
    for worker in schedule.workers:

        def life(process: Process, worker: Worker = worker) -> None:
            handed = Handed(process, worker)
            attempt.handed.append(handed)
            attempt.calls.workers[process] = worker
            _train_one(attempt, handed, place)

        world.process(f"worker_{worker.rank}", life)
    with substituted(), place.at_work(attempt.calls), mock.patch.dict(os.environ, environment):
        world.run()
    attempt.handed.sort(key=lambda handed: handed.worker.rank)
    return attempt


def _train_one(attempt: Attempt, handed: Handed, place: Place) -> None:
    schedule, worker, world = attempt.schedule, handed.worker, attempt.world
    begin = world.clock
    hook = smdebug.Hook(
        place.storage(handed.process),
        worker=worker.rank,
        num_workers=len(schedule.workers),
        include_workers="all",
        include_collections=["weights"],
        save_config=SaveConfig(save_interval=schedule.interval),
    )
    for step in range(worker.steps):
        values = values_of(attempt.number, worker.rank, step, schedule.size)
        is_saved = step % schedule.interval == 0
        if is_saved:
            handed.begun[step] = values
        with hook.step():
            hook.record_all(values)
        if is_saved:
            handed.steps[step] = values
            handed.ended_at[step] = world.clock
        if schedule.late and is_saved:
            handed.late[step] = {"late": np.array(step + 0.25 + attempt.number)}
            hook.save_tensor("late", handed.late[step]["late"])
        handed.trained += 1
        handed.longest_wait = max(handed.longest_wait, world.clock - begin)
        world.sleep(schedule.workers[0].pause)
        begin = world.clock
    handed.closing_from = world.clock
    if worker.ends == "exits":
        handed.process.at_exit.insert(0, lambda: _note_end(handed))
        return
    if worker.ends == "interrupted":
        hook.end_run(ended=False)
    else:
        hook.close()
    _note_end(handed)
    if worker.ends == "lingers":
        world.sleep(300.0)


def _note_end(handed: Handed) -> None:
    assert handed.closing_from is not None
    handed.closing_took = handed.process.world.clock - handed.closing_from
