"""A loss that gets the wrong kind of input, as its computation shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules

_WRONG: Mapping[tuple[str, str], str] = {
    ("cross entropy", "softmax"): "cross entropy applies softmax itself, but got a softmax",
    ("cross entropy", "sigmoid"): "cross entropy takes logits, but got a sigmoid",
    ("cross entropy", "raw outputs"): (
        "the negative log-likelihood takes log-probabilities, but got the raw outputs of a layer"
    ),
    ("cross entropy", "probabilities"): (
        "the negative log-likelihood takes log-probabilities, but got probabilities"
    ),
    ("binary cross entropy with logits", "sigmoid"): (
        "binary cross entropy with logits applies the sigmoid itself, but got a sigmoid"
    ),
    ("binary cross entropy with logits", "softmax"): (
        "binary cross entropy with logits takes logits, but got a softmax"
    ),
    ("binary cross entropy", "log-softmax"): (
        "binary cross entropy takes probabilities, but got their logarithms"
    ),
    ("Kullback-Leibler divergence", "softmax"): (
        "the Kullback-Leibler divergence takes log-probabilities, but got probabilities"
    ),
}
_RAW = "cross entropy takes probabilities here, but got the raw outputs of the last layer"


class LossInput(DefaultRule):
    """Fires when a criterion gets probabilities instead of logits, a single class, or broadcast targets."""

    cause = "loss input"
    needs = "the run does not show what the loss was computed from"
    advice: ClassVar[Advice] = {
        "loss input": (
            "Give cross entropy and binary cross entropy with logits the raw outputs of the last layer, "
            "without a softmax or sigmoid before them, and NLLLoss the result of log_softmax.",
            "In Keras, set from_logits=True for raw outputs, or end the model with softmax or sigmoid.",
            "Give outputs and targets the same shape: [N] and [N, 1] are broadcast to [N, N].",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss = seen.facts.get("loss")
        if not loss:
            self.looked = False
            return
        found = dict(_problems(loss))
        self.since = {what: self.since.get(what, seen.step) for what in found}
        place = self._place(seen) if found else None
        for what, message in found.items():
            yield self.finding(
                f"The loss: {message}",
                since=self.since[what],
                tensor=place,
                statistic="input of the loss",
                value=what,
            )

    def _place(self, seen: ObservedStep) -> str:
        """The model's output; of Keras's, the layer that returns the predictions."""
        outputs = seen.statistics("outputs")
        layers = [name for name in outputs.names if name.endswith("/outputs")] if outputs else []
        return layers[-1] if layers else Modules.of(seen).output


def _problems(loss: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for term in loss.get("terms") or ():
        criterion, given = term.get("criterion"), term.get("given")
        if term.get("expects") == "probabilities":  # Keras, unless from_logits is set
            message = _RAW if given == "logits" else None
        else:
            message = _WRONG.get((criterion, given))
        if message is not None:
            yield f"{given} before {criterion}", message
        if criterion == "cross entropy" and term.get("classes") == 1 and term.get("targets"):
            yield "one class", "cross entropy over a single class is always 0"
    shape = loss.get("broadcast")
    if shape:
        text = " x ".join(map(str, shape))
        yield (
            "broadcast",
            f"outputs and targets were broadcast to {text}: each output is compared with all targets",
        )
