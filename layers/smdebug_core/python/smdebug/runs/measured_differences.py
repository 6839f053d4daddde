"""Where the measured statistics of two runs differ, for the page and for `smdebug compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.files.observations import STATISTICS
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMN
from smdebug.runs.evaluation.layer_order import in_order, layers_of, modules_of
from smdebug.trials import Trial
from smdebug.trials.kinds import COMPUTED
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix

TOLERANCE = 1e-4
"""How much two statistics may differ, as a share of the larger."""
COMPARED = ("min", "max", "mean", "abs_mean", "rms")
PLACES = tuple(COLUMN[name] for name in COMPARED)
"""The columns of a matrix that are compared."""


@dataclass(frozen=True)
class ComparedRow:
    """The statistics of a tensor in two runs at a step."""

    kind: str
    tensor: str
    worker: str
    statistic: str = ""
    """The first statistic that differs; empty if none does."""
    values: tuple[float, float] = (0.0, 0.0)
    largest: float = 0.0
    """The largest difference of a statistic."""

    @property
    def differs(self) -> bool:
        return bool(self.statistic)


def differing(mine: Any, others: Any, tolerance: float = TOLERANCE) -> NDArray[np.bool_]:
    """Return which statistics differ by more than the tolerance, or are unknown in one of the two."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(mine), np.abs(others))
        differ = np.abs(mine - others) > tolerance * size
    different: NDArray[np.bool_] = differ | (np.isnan(mine) != np.isnan(others))
    return different


def compared_rows(
    run: Trial,
    other: Trial,
    step: int,
    *,
    tolerance: float = TOLERANCE,
    is_chosen: Callable[[str], bool] = lambda name: True,
) -> Iterator[ComparedRow]:
    """Yield the tensors that both runs have measured at a step, as a step computes them."""
    for worker in _workers(run, other, step):
        ours, theirs = (trial.observations.at(step, worker) for trial in (run, other))
        if ours.layout is None or theirs.layout is None:
            continue
        root = next(iter(modules_of(ours.layout)), "")
        layers = layers_of(ours.layout)
        for kind in _kinds(ours.layout.tensors):
            a, b = ours.statistics(kind), theirs.statistics(kind)
            if a is None or b is None:
                continue
            common = [at for at in in_order(a.names, layers, root) if a.names[at] in b]
            chosen = [at for at in common if is_chosen(a.names[at])]
            yield from _rows(kind, worker, a, b, chosen, tolerance)


def _rows(
    kind: str,
    worker: str,
    ours: StatisticsMatrix,
    theirs: StatisticsMatrix,
    chosen: Sequence[int],
    tolerance: float,
) -> Iterator[ComparedRow]:
    places = {name: place for place, name in enumerate(theirs.names)}
    match = [places[ours.names[at]] for at in chosen]
    mine, others = ours.values[chosen][:, PLACES], theirs.values[match][:, PLACES]
    counts = ours.values[chosen, COLUMN["count"]], theirs.values[match, COLUMN["count"]]
    differ = differing(mine, others, tolerance)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(mine.astype(np.float64) - others)
    for row, at in enumerate(chosen):
        if not (counts[0][row] > 0 or counts[1][row] > 0):
            continue  # neither step had it
        name = ours.names[at]
        if not differ[row].any():
            yield ComparedRow(kind, name, worker)
            continue
        column = int(np.flatnonzero(differ[row])[0])
        values = float(mine[row, column]), float(others[row, column])
        largest = float(np.nanmax(distance[row], initial=0.0))
        yield ComparedRow(kind, name, worker, COMPARED[column], values, largest)


def _kinds(kinds: Any) -> list[str]:
    rank = {kind: at for at, kind in enumerate(COMPUTED)}
    return sorted(kinds, key=lambda kind: rank.get(kind, len(rank)))


def _workers(run: Trial, other: Trial, step: int) -> list[str]:
    """Return the workers that have statistics of the step in both runs."""
    if not (run.observations.has_facts and other.observations.has_facts):
        return []
    found = []
    for trial in (run, other):
        written = trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
        found.append(
            {
                worker
                for worker, at in written.items()
                if any(name.startswith(STATISTICS) for name in at.places)
            }
        )
    return sorted(found[0] & found[1])
