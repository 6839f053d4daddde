"""Layers that do not compute in the precision that was declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from smdebug.files.observations import ObservedTensor
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules

_CAST = ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "Bilinear")
"""Classes that autocast always computes in the lower precision."""
_LOWER = ("bfloat16", "float16")
_NOTHING_DECLARED = "no lower precision was declared (autocast)"


class ComputePrecision(DefaultRule):
    """Fires when layers that autocast lowers give another type than it declares."""

    cause = "precision"
    advice: ClassVar[Advice] = {
        "precision": (
            "Call the layer inside the autocast context, and look for .float() or "
            "autocast(enabled=False) around it.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: int | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        outputs, modules = seen.statistics("outputs"), Modules.of(seen)
        declared = seen.facts.get("autocast")
        if outputs is None:
            self.lacks("no outputs of layers were saved")
            return
        all_cast = _cast(seen, modules, outputs.tensors)
        if declared is None and not any(tensor.dtype in _LOWER for *_, tensor in all_cast):
            self.lacks(_NOTHING_DECLARED)
            return
        cast = [(layer, tensor) for place, layer, tensor in all_cast if outputs.values[place, 0] > 0]
        types = [tensor.dtype for _, tensor in cast]
        lowered = [kind for kind in types if kind in _LOWER]
        wanted = declared or (max(set(lowered), key=lowered.count) if lowered else None)
        if wanted is None or not cast:
            self.lacks(_NOTHING_DECLARED)
            return
        # The last layer is often computed in float32 on purpose.
        others = [(layer, tensor) for layer, tensor in cast[:-1] if tensor.dtype != wanted]
        if len(cast) - 1 == len(others) and not declared:
            others = []
        self.since = None if not others else seen.step if self.since is None else self.since
        for layer, tensor in others:
            yield self.finding(
                f"{modules.described(layer)} gives {tensor.dtype}, while autocast declares {wanted}",
                since=self.since or 0,
                tensor=tensor.name,
                statistic="type",
                value=tensor.dtype,
                limit=wanted,
                why=(
                    f"{len(others)} of {len(cast)} layers give {tensor.dtype}, "
                    f"{len(cast) - len(others)} another type",
                ),
            )


def _cast(
    seen: ObservedStep, modules: Modules, tensors: Sequence[ObservedTensor]
) -> list[tuple[int, str, ObservedTensor]]:
    """The outputs of layers that autocast lowers, each with its row and its layer."""
    known: list[tuple[int, str, ObservedTensor]] | None = seen.shared_by_layout.get("cast")
    if known is None:
        layers = [(modules.layer_of_output(tensor.name), tensor) for tensor in tensors]
        known = seen.shared_by_layout["cast"] = [
            (place, layer, tensor)
            for place, (layer, tensor) in enumerate(layers)
            if modules.classes.get(layer) in _CAST and layer != modules.root
        ]
    return known
