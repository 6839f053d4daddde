"""Comparing the copies of a model that the workers of a run train, by their digests.

Index files hold one root digest per worker and kind of tensor. Digests of single tensors are read only where
the roots differ, and once for all workers that have the same root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Odd numbers that make one number of the two halves of a digest. That two digests of 128 bits give the same
#: has a chance of 1 in 2**64.
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_Keys = NDArray[np.uint64]


class Digests(NamedTuple):
    """What a worker's tensors contain: a row of two halves for each name, zeros where it has none."""

    names: Sequence[str]
    halves: NDArray[np.int64]


class Difference(NamedTuple):
    """A tensor whose content differs between workers at a step."""

    name: str
    workers: tuple[str, ...]
    """The workers that differ from most others."""
    others: tuple[str, ...]
    """The workers with the most frequent content; if two are, those that agree with the first worker."""


def differences(roots: Mapping[str, str], digests_of: Callable[[str], Digests]) -> list[Difference]:
    """Return the tensors that differ, by name; `digests_of` is called for one worker of each root."""
    groups: dict[str, str] = {}
    workers = sorted(roots, key=_place)
    for worker in workers:
        groups.setdefault(roots[worker], worker)
    if len(groups) < 2:
        return []
    names, keys = _keys_by_name([digests_of(worker) for worker in groups.values()])
    numbers = {root: number for number, root in enumerate(groups)}
    keys = keys[:, [numbers[roots[worker]] for worker in workers]]
    known: dict[bytes, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    found = []
    for place in np.flatnonzero((keys != keys[:, :1]).any(axis=1)).tolist():
        most = _most_frequent(keys[place])
        parts = known.get(most.tobytes())
        if parts is None:  # few different ones: most names differ between the same workers
            different, same = (compress(workers, mask.tolist()) for mask in (~most, most))
            parts = known[most.tobytes()] = (tuple(different), tuple(same))
        found.append(Difference(names[place], *parts))
    return sorted(found)


def _keys_by_name(digests: Sequence[Digests]) -> tuple[list[str], _Keys]:
    """All names, and a row for each: what its tensor contains, by worker; 0 where there is none."""
    names = list(digests[0].names)
    if all(list(digest.names) == names for digest in digests):
        halves = np.stack([digest.halves for digest in digests], axis=1)
    else:
        names = list(dict.fromkeys(name for digest in digests for name in digest.names))
        places = {name: place for place, name in enumerate(names)}
        halves = np.zeros((len(names), len(digests), 2), np.int64)
        for number, digest in enumerate(digests):
            halves[[places[name] for name in digest.names], number] = digest.halves
    keys: _Keys = (halves.view(np.uint64) * _FACTORS).sum(axis=2, dtype=np.uint64)
    return names, keys


def _most_frequent(keys: _Keys) -> NDArray[np.bool_]:
    """Which have the most frequent value; if several are, the one that comes first."""
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(starts, append=len(keys))
    if len(starts) == len(keys):  # all are different
        most = keys[0]
    else:
        most = keys[np.isin(keys, ordered[starts[counts == counts.max()]]).argmax()]
    found: NDArray[np.bool_] = keys == most
    return found


def absent(present: Iterable[str], expected: int) -> list[str]:
    """Return the workers `worker_0` to `worker_<expected - 1>` that are not present.

    It is empty where the workers have other names: which of those are missing is not known.
    """
    there = set(present)
    usual = [f"worker_{number}" for number in range(expected)]
    return [name for name in usual if name not in there] if there <= set(usual) else []


def _place(worker: str) -> tuple[str, int]:
    """The order of workers: by number, if they have one."""
    name, _, number = worker.rpartition("_")
    return (name, int(number)) if number.isdecimal() else (worker, 0)
