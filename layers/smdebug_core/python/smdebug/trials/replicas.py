"""Comparing the copies of a model that the workers of a run train, by their digests.

Index files hold one root digest per worker and kind of tensor. Digests of single tensors are read only where
the roots differ, and once for all workers that have the same root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

#: What a worker's tensors contain: a digest by name.
Digests = Mapping[str, tuple[int, int]]


class Difference(NamedTuple):
    """A tensor whose content differs between workers at a step."""

    name: str
    workers: tuple[str, ...]
    """The workers that differ from most others."""
    others: tuple[str, ...]
    """The workers with the most frequent content; if two are, those that agree with the first worker."""


def differences(roots: Mapping[str, str], digests_of: Callable[[str], Digests]) -> list[Difference]:
    """Return the tensors that differ, by name; `digests_of` is called for one worker of each root."""
    groups: dict[str, list[str]] = {}
    for worker, root in roots.items():
        groups.setdefault(root, []).append(worker)
    if len(groups) < 2:
        return []
    contents = [(workers, digests_of(workers[0])) for workers in groups.values()]
    names: set[str] = set().union(*(digests for _, digests in contents))
    found = []
    for name in sorted(names):
        by_content: dict[tuple[int, int] | None, list[str]] = {}
        for workers, digests in contents:
            by_content.setdefault(digests.get(name), []).extend(workers)
        if len(by_content) > 1:
            found.append(_difference(name, by_content.values()))
    return found


def _difference(name: str, groups: Iterable[list[str]]) -> Difference:
    ordered = sorted(groups, key=lambda workers: (-len(workers), _place(min(workers, key=_place))))
    most, *rest = ordered
    different = [worker for workers in rest for worker in workers]
    return Difference(name, tuple(sorted(different, key=_place)), tuple(sorted(most, key=_place)))


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
