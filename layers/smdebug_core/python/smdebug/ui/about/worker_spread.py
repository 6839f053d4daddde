"""How much workers differ in the tensors that several of them save."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.files.names import OBSERVATIONS
from smdebug.runs.overview import thinned
from smdebug.runs.statistics import statistics_at
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor

MOST_COMPARED = 40  # tensors
MOST_STEPS = 24


@dataclass(frozen=True)
class Disagreement:
    """The spread of the workers' mean |x| of one tensor, relative to their mean."""

    name: str
    steps: tuple[int, ...]
    spread: tuple[float, ...]

    @property
    def largest(self) -> float:
        return max((spread for spread in self.spread if math.isfinite(spread)), default=0.0)


def worker_spread(
    trial: Trial, progress: Callable[[int], Any] = lambda done: None
) -> tuple[Disagreement, ...]:
    """Return the differences between workers, the largest first; none of a single worker."""
    chosen = thinned(trial.steps(), MOST_STEPS)
    found = []
    for name in compared_tensors(trial):
        tensor = trial.tensor(name)
        spreads = {step: _spread(tensor, step) for step in chosen}
        points = {step: spread for step, spread in spreads.items() if spread is not None}
        progress(1)
        if points:
            found.append(Disagreement(name, tuple(points), tuple(points.values())))
    return tuple(sorted(found, key=lambda tensor: -tensor.largest))


def compared_tensors(trial: Trial) -> list[str]:
    """Return the saved tensors that are compared: the first ones."""
    if len(trial.workers()) < 2:
        return []
    names = (name for name in trial.tensor_names() if not name.startswith(OBSERVATIONS))
    return list(islice(names, MOST_COMPARED))


def _spread(tensor: Tensor, step: int) -> float | None:
    try:
        workers = tensor.workers(step)
    except SMDebugError:
        return None
    summaries = (statistics_at(tensor, step, worker=worker) for worker in workers)
    means = [
        summary.abs_mean for summary in summaries if summary is not None and summary.abs_mean is not None
    ]
    if len(means) < 2:
        return None
    middle = sum(means) / len(means)
    return (max(means) - min(means)) / middle if middle else 0.0
