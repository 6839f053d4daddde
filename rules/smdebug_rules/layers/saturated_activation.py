"""Layers whose tanh or sigmoid inputs are so large that the gradient is close to zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import read_values, tensor_label
from smdebug.rules.parameters import is_given, number, numbers
from smdebug.rules.selection import TensorSelection
from smdebug_rules.layers.activity import activations, judged_layer, percent_inactive

_BOTH = ".*tanh_input|.*sigmoid_input"
_TANH, _SIGMOID = "tanh_input", "sigmoid_input"


class SaturatedActivation(TensorRule):
    """Fires when more than `threshold_layer` percent of the units of a layer are saturated.

    A unit is saturated if its *input* is within the function's limits in less than `threshold_inactivity`
    percent of the step's samples (the first axis). The tensor's name must contain "tanh" or "sigmoid", unless
    it is in the collection `tanh_input` or `sigmoid_input`, where the hook for PyTorch lists such layers.
    """

    cause = "saturated activation"
    advice: ClassVar = {
        "": (
            "Normalise the inputs of the layer (batch or layer normalisation).",
            "Initialise with Xavier's method, and lower the learning rate.",
            "Replace tanh or sigmoid by ReLU or GELU in hidden layers.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = _BOTH,
        threshold_tanh_min: Any = -9.4999,
        threshold_tanh_max: Any = 9.4999,
        threshold_sigmoid_min: Any = -23.0,
        threshold_sigmoid_max: Any = 16.99999,
        threshold_inactivity: Any = 1.0,
        threshold_layer: Any = 50.0,
        *,
        threshold_tanh: Any = None,
        threshold_sigmoid: Any = None,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = activations(collection_names, tensor_regex, _BOTH, (_TANH, _SIGMOID))
        self.tanh = _limits("threshold_tanh", threshold_tanh, threshold_tanh_min, threshold_tanh_max)
        self.sigmoid = _limits(
            "threshold_sigmoid", threshold_sigmoid, threshold_sigmoid_min, threshold_sigmoid_max
        )
        self.threshold_inactivity = number(
            "threshold_inactivity", threshold_inactivity, minimum=0, maximum=100
        )
        self.threshold_layer = number("threshold_layer", threshold_layer, minimum=0, maximum=100)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        listed = {
            name: kind for kind in (_TANH, _SIGMOID) for name in TensorSelection([kind]).names(trial, step)
        }
        for layer in read_values(trial, self.selection.names(trial, step), step):
            limits = self._limits_of(listed.get(layer.name, layer.name))
            if limits is None:
                reason = "its name contains neither tanh nor sigmoid"
                yield Judged(layer.name, layer.worker, skipped=reason)
                continue
            saturated = percent_inactive(layer, *limits, self.threshold_inactivity)
            yield judged_layer(
                tensor_label(layer.name, layer.worker, trial),
                layer,
                saturated,
                word="saturated",
                threshold=self.threshold_layer,
                because=f": inputs outside {limits[0]:.7g} to {limits[1]:.7g}",
            )

    def _limits_of(self, name: str) -> tuple[float, float] | None:
        name = name.lower()
        if "tanh" in name:
            return self.tanh
        return self.sigmoid if "sigmoid" in name else None


_DEFAULTS = {"threshold_tanh": (-9.4999, 9.4999), "threshold_sigmoid": (-23.0, 16.99999)}


def _limits(name: str, both: Any, least: Any, most: Any) -> tuple[float, float]:
    limits = number(f"{name}_min", least), number(f"{name}_max", most)
    if is_given(both):
        pair = numbers(name, both)
        if len(pair) != 2:
            raise SMDebugValueError(f"{name} must be two numbers, not {both!r}")
        if limits not in (_DEFAULTS[name], tuple(pair)):
            raise SMDebugValueError(f"{name} sets {name}_min and {name}_max, and contradicts them")
        limits = pair[0], pair[1]
    if limits[0] >= limits[1]:
        raise SMDebugValueError(f"{name}_min ({limits[0]:g}) must be below {name}_max ({limits[1]:g})")
    return limits
