"""How long the rules that compare ranks take for a step of many workers, beside reading what they compare."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.replicas import Difference, Digests, absent, differences
from smdebug.trials.observations.worker_parts import WorkerParts
from smdebug_default_rules.ranks.missing_rank import MissingRank
from smdebug_default_rules.ranks.ranks_alike import RanksAlike
from smdebug_default_rules.ranks.replicas_differ import ReplicasDiffer

WORKERS, TENSORS = 1024, 200
WANTED = 0.050
"""Seconds that a step may take."""
TRIES = 5


class Compared:
    """Digests of all workers in memory, as the observations of a run hand them out."""

    expected_workers = WORKERS
    are_beside = False

    def __init__(self, differing_workers: int):
        random = np.random.default_rng(0)
        names = [f"layers.{number}.weight" for number in range(TENSORS)]
        halves = random.integers(1, 1 << 62, (WORKERS, TENSORS, 2))
        halves[differing_workers:] = halves[-1]
        self._digests = {f"worker_{n}": Digests(list(names), of_worker) for n, of_worker in enumerate(halves)}
        self._roots = {
            worker: {"parameters": digests.halves.tobytes().hex()[:32], "inputs": worker}
            for worker, digests in self._digests.items()
        }

    def roots(self, step: int) -> Mapping[str, Mapping[str, str]]:
        return self._roots

    def differing(self, step: int) -> list[Difference]:
        roots = {worker: each["parameters"] for worker, each in self._roots.items()}
        return differences(roots, self._digests.__getitem__)

    def parts(self, step: int) -> Mapping[str, WorkerParts]:
        return {}

    def absent_workers(self, step: int, *, least_present: int = 2) -> list[str]:
        return absent(self._roots, WORKERS)


def seconds(differing_workers: int) -> float:
    """The seconds of one step of which so many workers differ from all others."""
    seen: Any = SimpleNamespace(step=10, mode=ModeKeys.TRAIN, facts={}, statistics=lambda kind: None)
    trial: Any = SimpleNamespace(
        observations=Compared(differing_workers), mode_modestep=lambda step: (ModeKeys.TRAIN, step)
    )
    fastest = float("inf")
    for _ in range(TRIES):
        differ, alike, missing = ReplicasDiffer(trial), RanksAlike(trial), MissingRank(trial)
        differ.all_were_equal, missing.waiting, missing.several = True, 4, True
        begun = time.process_time()
        found = [*differ.check(seen), *alike.check(seen), *missing.check(seen)]
        fastest = min(fastest, time.process_time() - begun)
        assert bool(found) is (differing_workers > 0)
    return fastest


def report() -> bool:
    """Print a line for few workers that differ and for all; return whether they are fast enough."""
    held = True
    for differing in (0, 1, WORKERS):
        took = seconds(differing)
        held = held and took <= WANTED
        print(
            f"{WORKERS:,} workers with digests of {TENSORS} tensors, {differing:,} of them different: "
            f"{1e3 * took:.1f} ms a step beside the I/O (at most {1e3 * WANTED:.0f})"
        )
    return held
