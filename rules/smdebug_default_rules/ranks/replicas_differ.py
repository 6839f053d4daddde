"""Parameters that should be equal on all ranks but are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from smdebug.numbers.rows import COLUMN
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
from smdebug.trials.observations.worker_parts import PartsOfTensor, Place, by_tensor
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import BOTH, Advice, DefaultRule

MOST_NAMED = 8


class ReplicasDiffer(DefaultRule):
    """Fires when a parameter that was equal on all ranks differs between them.

    Also when few of many ranks differ from the others. Parameters that differ from the first step on
    belong to their rank, such as shards and experts, which is not a fault. Of a parameter that a device
    mesh shards, the ranks that hold the same part are compared.
    """

    cause = "replicas differ"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "replicas differ": (
            "Wrap the model in DistributedDataParallel before "
            "the optimizer is made, and train the wrapped model.",
            "Do not change parameters, gradients or their clipping on one rank alone.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.all_were_equal = False
        self.replicated: list[str] = []
        """Parameters that were equal while others differed."""
        self.since: dict[str, int] = {}
        self.copied_parts: list[str] = []
        """Sharded parameters of which ranks of different meshes once held equal parts."""
        self.parts_since: dict[str, int] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        roots = {
            worker: kinds["parameters"]
            for worker, kinds in observations.roots(seen.step).items()
            if "parameters" in kinds
        }
        matrix = seen.statistics("parameters")
        parts = by_tensor(observations.parts(seen.step))
        yield from self._parts(seen, parts, matrix)
        if len(roots) < 2:
            if len({worker for tensor in parts for worker in tensor.held}) < 2:
                self.lacks("parameters of fewer than two ranks were saved")
            return
        if len(set(roots.values())) == 1:
            self.all_were_equal = True
            self.since = {}
            return
        differing = observations.differing(seen.step)
        names = set() if matrix is None else set(matrix.names)
        if not self.all_were_equal and matrix is not None:
            varied = {matrix.names[place] for place in where(_varied(matrix))}
            varied -= {difference.name for difference in differing}
            self.replicated = sorted({*self.replicated, *varied})
        known = set(self.replicated)
        differing = [
            difference
            for difference in differing
            if self.all_were_equal
            or difference.name in known
            or are_few(difference.workers, difference.others)
        ]
        self.since = {difference.name: self.since.get(difference.name, seen.step) for difference in differing}
        for difference in sorted(differing, key=lambda each: self.since[each.name])[:MOST_NAMED]:
            name, workers = difference.name, difference.workers
            yield self.finding(
                f"{name} differs between the ranks: {', '.join(workers[:8])} from "
                f"{len(difference.others)} "
                f"others ({len(differing)} of {len(names) or '?'} parameters differ)",
                since=self.since[name],
                tensor=name,
                worker=workers[0] if len(workers) < len(difference.others) else None,
                statistic="parameters that differ",
                value=len(differing),
                limit=0,
                why=(
                    f"Ranks that differ: {len(workers)} of {len(workers) + len(difference.others)}, where 0 "
                    "should after a step",
                ),
            )

    def _parts(
        self, seen: ObservedStep, parts: Sequence[PartsOfTensor], matrix: StatisticsMatrix | None
    ) -> Iterator[Finding]:
        """Yield the sharded parameters of which copies of a part differ."""
        varied = set() if matrix is None else {matrix.names[place] for place in where(_varied(matrix))}
        known = set(self.copied_parts)
        found = []
        for tensor in parts:
            between_meshes = tensor.differing_between_meshes
            differing = tensor.differing or (between_meshes if tensor.name in known else {})
            if differing:
                found.append((tensor.name, differing))
            elif not between_meshes and tensor.name in varied:
                known.add(tensor.name)
        self.copied_parts = sorted(known)
        self.parts_since = {name: self.parts_since.get(name, seen.step) for name, _ in found}
        for name, differing in sorted(found, key=lambda each: self.parts_since[each[0]])[:MOST_NAMED]:
            place, (most, *others) = next(iter(differing.items()))
            other = others[0][0]
            yield self.finding(
                f"The part of {name}{said(place)} should be the same on "
                f"{len(most) + sum(map(len, others))} ranks: {', '.join(others[0][:4])} differs from "
                f"{', '.join(most[:4])} ({len(found)} of {len(parts)} sharded parameters)",
                since=self.parts_since[name],
                tensor=name,
                worker=other if len(others[0]) < len(most) else None,
                statistic="sharded parameters of which copies differ",
                value=len(found),
                limit=0,
                title="Copies of a shard differ between the ranks",
                why=(f"Contents of one part: {1 + len(others)}, where 1 should be",),
                advice=(
                    "Give ranks that hold copies one seed before the model is made, or broadcast its "
                    "parameters, and average gradients over that dimension of the mesh.",
                ),
            )


def said(place: Place) -> str:
    """Where a part lies, in words."""
    return f" at {', '.join(f'{name} {index}' for name, index in place)}" if place else ""


def are_few(workers: Sequence[str], others: Sequence[str]) -> bool:
    """Whether most ranks agree, and at least two do, so that those that differ are not experts or shards."""
    return len(others) >= 2 and len(workers) < len(others)


def _varied(matrix: StatisticsMatrix) -> Any:
    """Which parameters have several values: zeros and ones are equal on all ranks without being replicas."""
    return matrix.values[:, COLUMN["min"]] < matrix.values[:, COLUMN["max"]]
