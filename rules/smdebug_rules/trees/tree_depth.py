"""Trees so deep that they memorise the training data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import MISSING, each_worker, measure, tensor_label, value_of
from smdebug.rules.parameters import number

_NODE = "trees/Node"


def depth_of_heap(largest_id: float) -> int:
    """Return the depth of a tree whose nodes are numbered level by level, from the largest number."""
    return math.floor(math.log2(largest_id)) if largest_id >= 1 else 0


def depth_by_children(children: Mapping[str, Sequence[str]]) -> int | None:
    """Return the longest path from a root to a leaf; None if the nodes do not form trees."""
    below = {child for pair in children.values() for child in pair}
    level = [node for node in children if node not in below]
    if children and not level:
        return None
    depth, visited = -1, 0
    while level:
        depth += 1
        visited += len(level)
        if visited > len(children) + len(below):
            return None  # there is a cycle
        level = [child for node in level for child in children.get(node, ())]
    return max(depth, 0)


class TreeDepth(TensorRule):
    """Fires when a tree of the step's boosting round is deeper than `depth`.

    If the children of the nodes were saved (`trees/ID`, `trees/Yes`, `trees/No`), the depth is the longest
    path from the root to a leaf; else it follows from the largest number in `trees/Node`, and may be too
    low.
    """

    advice: ClassVar = {
        "": (
            "Set `max_depth` lower, or `min_child_weight` higher.",
            "Compare the validation metric with shallower trees before you keep deep ones.",
        )
    }

    def __init__(self, base_trial: Any, depth: Any = 4, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.depth = number("depth", depth, minimum=0)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        for tensor, worker in each_worker(trial, [_NODE], step):
            depth = self._by_children(step, worker)
            source = "its branches"
            if depth is None:
                largest = self._largest_id(tensor.name, worker, step)
                if largest is None or not math.isfinite(largest):
                    yield Judged(tensor.name, worker, skipped="it does not hold node numbers")
                    continue
                depth, source = depth_of_heap(largest), f"its largest node {largest:g}"
            finding = None
            if depth > self.depth:
                finding = Finding(
                    statistic="depth",
                    value=depth,
                    threshold=self.depth,
                    message=f"{tensor_label(tensor.name, worker, trial)}: tree depth {depth} "
                    f"(limit {self.depth:g}), from {source}",
                )
            yield Judged(tensor.name, worker, finding, badness=depth, value=depth)

    def _largest_id(self, name: str, worker: str, step: int) -> float | None:
        for nodes in measure(self.base_trial, [name], step):
            if nodes.worker == worker:
                return nodes.saved("max") if nodes.statistics is None else nodes.statistics.max
        return None

    def _by_children(self, step: int, worker: str) -> int | None:
        columns = [self._texts(f"trees/{column}", step, worker) for column in ("ID", "Yes", "No")]
        if any(column is None for column in columns):
            return None
        ids, *branches = (column or [] for column in columns)
        if not ids or any(len(branch) != len(ids) for branch in branches):
            return None
        known = set(ids)
        children = {
            node: [child for child in pair if child in known]
            for node, pair in zip(ids, zip(*branches, strict=True), strict=True)
        }
        return depth_by_children(children) if any(children.values()) or len(ids) == 1 else None

    def _texts(self, name: str, step: int, worker: str) -> list[str] | None:
        try:
            value = value_of(self.base_trial.tensor(name), step, ModeKeys.GLOBAL, worker)
        except MISSING:
            return None
        if value is None or value.dtype.kind not in "US":
            return None
        return [
            text.decode(errors="replace") if isinstance(text, bytes) else str(text)
            for text in value.reshape(-1).tolist()
        ]
