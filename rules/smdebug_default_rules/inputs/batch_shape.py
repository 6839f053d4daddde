"""Inputs and labels that differ in number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.inputs import time_axis
from smdebug_default_rules.tensors import Modules

LEAST_ROWS = 8
LEAST_STEPS = 2


class BatchShape(DefaultRule):
    """Fires when a batch of many rows becomes a single one between the model's input and its loss.

    Also when a recurrent layer of PyTorch takes the rows of the batch for the steps of a sequence, as where
    batch_first is forgotten.
    """

    cause = "batch shape"
    needs = "the model's input, its output, or the rows that the loss compares were not saved"
    advice: ClassVar[Advice] = {
        "batch shape": (
            "Compare the first axis of inputs, outputs and labels, "
            "and look for an index, a mean or a view that removes it.",
            "If the loss compares more rows than were given, look for a view or a flatten that splits them.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps = 0
        self.since = 0
        self.mixed: dict[str, list[int]] = {}
        """The recurrent layers that mix rows, and at which steps in a row they did."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        yield from self._of_recurrent_layers(seen)
        shapes = seen.facts.get("shapes")
        terms = (seen.facts.get("loss") or {}).get("terms") or []
        outputs = seen.statistics("outputs")
        name = Modules.of(seen).output
        if not shapes or not shapes[0] or not terms or outputs is None or name not in outputs:
            self.looked = False
            return
        given = int(shapes[0][0])
        shape = outputs.tensors[outputs.names.index(name)].shape
        compared = int(terms[0].get("rows") or 0)
        if not _is_collapsed(given, compared, shape):
            self.steps = 0
            return
        self.since = seen.step if not self.steps else self.since
        self.steps += 1
        if self.steps >= LEAST_STEPS:
            yield self.finding(
                f"{given} rows go into the model, and the loss compares {compared}",
                since=self.since,
                tensor=Modules.of(seen).input,
                statistic="rows compared",
                value=compared,
                limit=given,
                why=(f"The output has the shape {list(shape)}, for {given} rows of input",),
                advice=self.advice["batch shape"][:: 1 if compared < given else -1][:1],
            )

    def _of_recurrent_layers(self, seen: ObservedStep) -> Iterator[Finding]:
        found = [*time_axis.mixed(seen)]
        self.mixed = {
            each.layer: [*self.mixed.get(each.layer, ()), seen.step][:LEAST_STEPS] for each in found
        }
        for each in found:
            if len(self.mixed[each.layer]) >= LEAST_STEPS:
                yield self.finding(
                    each.message,
                    since=self.mixed[each.layer][0],
                    tensor=each.output,
                    statistic="hidden states",
                    value=each.tokens,
                    limit=each.rows,
                    title=time_axis.TITLE,
                    why=(each.why,),
                    advice=(each.advice,),
                )


def _is_collapsed(given: int, compared: int, shape: tuple[int, ...]) -> bool:
    """Whether the loss compares a single row of a batch, or a number of rows that no reshaping explains."""
    if given >= LEAST_ROWS and compared == 1:
        return shape[:1] in ((given,), (1,))
    return len(shape) == 2 and shape[0] == given and compared > given and compared % given > 0
