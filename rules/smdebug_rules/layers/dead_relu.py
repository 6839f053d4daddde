"""ReLU layers in which most units are dead."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import read_values, tensor_label
from smdebug.rules.parameters import integer, number, one_of
from smdebug_rules.layers.activity import activations, judged_layer, percent_inactive


class DeadRelu(TensorRule):
    """Fires when more than `threshold_layer` percent of the units of a layer are dead.

    A unit is dead if its output is above zero in less than `threshold_inactivity` percent of the step's
    samples (the first axis). With granularity "channel", a unit is a channel.
    """

    cause = "dead activation"
    advice: ClassVar = {
        "": (
            "Lower the learning rate: one large update can push a layer below zero for good.",
            "Replace ReLU by LeakyReLU or GELU in these layers.",
            "Initialise the weights with Kaiming's method, and biases with zero or slightly above.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = ".*relu_output",
        threshold_inactivity: Any = 1.0,
        threshold_layer: Any = 50.0,
        granularity: Any = "unit",
        channel: Any = 1,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = activations(None, tensor_regex, ".*relu_output", ("relu_output",))
        self.threshold_inactivity = number(
            "threshold_inactivity", threshold_inactivity, minimum=0, maximum=100
        )
        self.threshold_layer = number("threshold_layer", threshold_layer, minimum=0, maximum=100)
        by_channel = one_of("granularity", granularity, ("unit", "channel")) == "channel"
        axis = integer("channel", channel)
        self.channel = axis if by_channel else None

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        for layer in read_values(trial, self.selection.names(trial, step), step):
            dead = percent_inactive(layer, 0.0, math.inf, self.threshold_inactivity, self.channel)
            where = tensor_label(layer.name, layer.worker, trial)
            yield judged_layer(where, layer, dead, word="dead", threshold=self.threshold_layer)
