"""What readers see of a run: its trial and its verification, in plain values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from smdebug import modes
from smdebug.exceptions import MissingCollectionFiles
from smdebug.logger import get_logger
from smdebug.runs.verifying import verify
from smdebug.storage import Storage
from smdebug.trials import Trial
from smdebug.trials.live.waiting import Clock, WaitLimits

Seen = dict[int, dict[str, dict[str, np.ndarray[Any, Any]]]]
"""Step -> worker -> tensor -> value."""


class Gap(NamedTuple):
    """Steps of a worker that the trial says to be missing: how many, and between which."""

    worker: str
    count: int
    first: int
    last: int | None

    def holds(self, worker: str, step: int) -> bool:
        return worker == self.worker and self.first <= step and (self.last is None or step <= self.last)


@dataclass
class Reading:
    """A run as readers see it."""

    refusal: str = ""
    """Why the run cannot be opened."""
    has_ended: bool = False
    seen: Seen = field(default_factory=dict)
    is_sound: bool = False
    problems: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    not_closed: tuple[str, ...] = ()
    """Workers that the trial says to have left no closing note."""
    closed: dict[str, bool] = field(default_factory=dict)
    """What each worker's collections file says of its end."""


def read(storage: Storage) -> Reading:
    """Read everything that readers are offered."""
    logger = get_logger()
    logger.disabled, before = True, logger.disabled
    try:
        return _read(storage)
    finally:
        logger.disabled = before


def _read(storage: Storage) -> Reading:
    limits = WaitLimits(run_seconds=0, end_seconds=0, event_file_attempts=1)
    has_ended = storage.exists("training_job_end.ts")
    try:
        trial = Trial("run", storage, wait_limits=limits, clock=Clock(sleep=lambda seconds: None))
    except MissingCollectionFiles as error:
        return Reading(refusal=str(error), has_ended=has_ended, closed=_closed(storage))
    reading = Reading(has_ended=has_ended, closed=_closed(storage))
    for step in trial.steps(mode=modes.GLOBAL, show_incomplete_steps=True):
        for name in trial.tensor_names(step=step, mode=modes.GLOBAL):
            tensor = trial.tensor(name)
            for worker in tensor.workers(step, mode=modes.GLOBAL):
                value = tensor.value(step, mode=modes.GLOBAL, worker=worker)
                reading.seen.setdefault(step, {}).setdefault(worker, {})[name] = value
    missing = trial.missing_steps
    reading.gaps = [Gap(gap.worker, gap.count, gap.first, gap.last) for gap in missing.gaps]
    reading.not_closed = missing.not_closed
    verification = verify(storage)
    reading.is_sound = verification.is_sound
    reading.problems = [str(problem) for problem in verification.problems]
    return reading


def _closed(storage: Storage) -> dict[str, bool]:
    ending = "_collections.json"
    return {
        key.rpartition("/")[2].removesuffix(ending): json.loads(storage.read(key))["_meta"].get(
            "closed", False
        )
        for key in storage.list("collections/")
        if key.endswith(ending)
    }
