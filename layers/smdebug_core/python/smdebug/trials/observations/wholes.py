"""Statistics of sharded tensors as wholes, combined from what each worker has measured of its part.

Parts of one mesh are combined if all are there. Those that the mesh copies count once, and must be equal: of
gradients that are still to be summed over ranks, the copies differ, and their numbers are those of no whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from smdebug.files.observations import ObservedTensor, Rows
from smdebug.numbers.rows import COLUMNS, MEASURED, combined
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
from smdebug.trials.observations.worker_parts import Share


class PartsOfWorker(Protocol):
    """What a worker has measured of its parts at a step."""

    @property
    def shares(self) -> Mapping[str, Share]: ...
    def measured_parts(self, kind: str) -> tuple[tuple[ObservedTensor, ...], NDArray[np.float64]] | None: ...


class _Held(NamedTuple):
    """The parts of the tensors of a matrix."""

    numbers: NDArray[np.float64]
    """[workers, tensors, numbers], with NaN where a worker has measured none."""
    first: NDArray[np.int64]
    """[workers, tensors]: the first worker that holds the same part; -1 where it holds none."""
    shares: Mapping[int, Share]
    """By the place of each tensor that is sharded: how the first of the workers that hold any holds it."""


def with_wholes(
    matrix: StatisticsMatrix, kind: str, own: PartsOfWorker, others: Mapping[str, PartsOfWorker]
) -> StatisticsMatrix:
    """Return the matrix of a worker with the rows of sharded tensors as wholes, as far as others allow it.

    The rows that stay those of its part are named in `parts`.
    """
    workers = [own, *others.values()]
    held = _held(matrix, kind, workers)
    if not held.shares:
        return matrix
    places = np.arange(len(workers))[:, None]
    is_first = held.first == places
    copies = np.take_along_axis(held.numbers, np.maximum(held.first, 0)[:, :, None], axis=0)
    same = (held.numbers == copies) | (np.isnan(held.numbers) & np.isnan(copies))
    agree = (same.all(2) | (held.first < 0)).all(0)
    wholes = combined(np.where(is_first[:, :, None], held.numbers, np.nan))
    known = is_first.sum(0)
    tensors, values = list(matrix.tensors), matrix.values.copy()
    parts, rows = {}, {}
    for place, share in held.shares.items():
        tensor = tensors[place]
        is_whole = wholes[place, 0] == math.prod(share.shape) and bool(agree[place])
        if is_whole:
            row = np.full(len(COLUMNS), np.nan)
            row[: len(MEASURED)] = wholes[place]
            rows[tensor.name] = row
            with np.errstate(over="ignore"):
                values[place] = row
            tensors[place] = replace(tensor, shape=share.shape)
        elif values[place, 0] > 0:
            parts[tensor.name] = _in_words(share, int(known[place]), agree=bool(agree[place]))
    return replace(matrix, tensors=Rows(tensors), values=values, parts=parts, combined=rows)


def own_parts(matrix: StatisticsMatrix, shares: Mapping[str, Share]) -> StatisticsMatrix:
    """Return the matrix of a worker, with the rows named that are of its part of a sharded tensor."""
    parts = {name: shares[_parameter(name)].words for name in matrix.names if _parameter(name) in shares}
    return replace(matrix, parts=parts) if parts else matrix


def _held(matrix: StatisticsMatrix, kind: str, workers: Sequence[PartsOfWorker]) -> _Held:
    places = {name: place for place, name in enumerate(matrix.names)}
    numbers = np.full((len(workers), len(places), len(MEASURED)), np.nan)
    first = np.full(numbers.shape[:2], -1)
    shares: dict[int, Share] = {}
    firsts: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}
    for number, worker in enumerate(workers):
        measured = worker.measured_parts(kind) if worker.shares else None
        if measured is None:
            continue
        rows, found = measured
        for tensor, row in zip(rows, found, strict=True):
            place, share = places.get(tensor.name), worker.shares.get(_parameter(tensor.name))
            if place is None or share is None or not row[0] > 0:
                continue
            if number and place not in shares and matrix.values[place, 0] > 0:
                continue  # the first worker has another tensor of that name, as stages of a pipeline do
            if share.mesh != shares.setdefault(place, share).mesh:
                continue  # a copy of the model on another mesh
            first[number, place] = firsts.setdefault((place, share.place), number)
            numbers[number, place] = row
    return _Held(numbers, first, shares)


def _parameter(name: str) -> str:
    """The parameter that a gradient or an update is of: it is sharded as that is."""
    return name.removeprefix("gradient/").removeprefix("update/")


def _in_words(share: Share, known: int, *, agree: bool) -> str:
    if not agree:
        return f"{share.words}; its copies differ"
    if known == share.of:
        return f"{share.words}; measured of a sample"
    return f"{share.words}; {known} of {share.of} parts are known" if known > 1 else share.words
