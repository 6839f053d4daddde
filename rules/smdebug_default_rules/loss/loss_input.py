"""A loss that gets the wrong kind of input, as its computation shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss import ignored_class, last_layer, opponents, own_targets, turned_weights
from smdebug_default_rules.tensors import Modules

_LOGITS = (
    "Remove the {given} before the loss, often the model's last line: {criterion} applies it to the raw "
    "outputs itself. Apply it only where you need probabilities, such as for predictions."
)
_LOGARITHMS = (
    "Give NLLLoss the result of log_softmax, or replace it by cross entropy, which takes raw outputs."
)
_PROBABILITIES = (
    "Use binary_cross_entropy_with_logits on the raw outputs, without a softmax or sigmoid before it."
)
_DIVERGENCE = "Give kl_div logarithms first: F.kl_div(F.log_softmax(outputs, 1), probabilities)."
_KERAS = "Set from_logits=True for raw outputs, or end the model with softmax or sigmoid."
_ONE_CLASS = (
    "Give the last layer one output for each class, or use binary_cross_entropy_with_logits for a single "
    "output."
)
_AXIS = (
    "Take the softmax over the axis of the classes, such as dim=1 of [rows, classes] or dim=-1, or leave it "
    "out and give the raw outputs to cross_entropy."
)
_SHAPES = "Give outputs and targets the same shape: [N] and [N, 1] are broadcast to [N, N]."
_MINUS = (
    "Give the optimizer the criterion itself, without a minus: optimizers minimise. A gain that should rise, "
    "such as an entropy, needs the minus; an error does not."
)
_END = (
    "End the model with the last linear layer, without {}, or bring the targets into the range that it has, "
    "{}, as (y - min) / (max - min) does."
)
_ERRORS = frozenset(
    (
        "cross entropy",
        "mean squared error",
        "mean absolute error",
        "smooth L1",
        "Huber",
        "binary cross entropy",
        "binary cross entropy with logits",
        "Kullback-Leibler divergence",
    )
)
"""Criteria that are 0 at best."""
_REGRESSIONS = frozenset(("mean squared error", "mean absolute error", "smooth L1", "Huber"))
_RANGES = {"ReLU": (0.0, math.inf), "Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
"""What a model can return that ends with such a layer."""
_LEAST_TARGETS = 8
_TWICE = "{} is applied twice"
_LOGS_WANTED = "The loss needs log-probabilities"


class _Wrong(NamedTuple):
    """What a criterion that is given the wrong thing is called, in a sentence, and what to try."""

    message: str
    title: str
    advice: str


_WRONG: Mapping[tuple[str, str], _Wrong] = {
    ("cross entropy", "softmax"): _Wrong(
        "cross entropy applies softmax itself, but got a softmax", _TWICE.format("Softmax"), _LOGITS
    ),
    ("cross entropy", "sigmoid"): _Wrong(
        "cross entropy takes logits, but got a sigmoid", "Sigmoid before cross entropy", _LOGITS
    ),
    ("cross entropy", "raw outputs"): _Wrong(
        "the negative log-likelihood takes log-probabilities, but got the raw outputs of a layer",
        _LOGS_WANTED,
        _LOGARITHMS,
    ),
    ("cross entropy", "probabilities"): _Wrong(
        "the negative log-likelihood takes log-probabilities, but got probabilities",
        _LOGS_WANTED,
        _LOGARITHMS,
    ),
    ("binary cross entropy with logits", "sigmoid"): _Wrong(
        "binary cross entropy with logits applies the sigmoid itself, but got a sigmoid",
        _TWICE.format("Sigmoid"),
        _LOGITS,
    ),
    ("binary cross entropy with logits", "softmax"): _Wrong(
        "binary cross entropy with logits takes logits, but got a softmax",
        "Softmax before a loss that takes logits",
        _LOGITS,
    ),
    ("binary cross entropy", "log-softmax"): _Wrong(
        "binary cross entropy takes probabilities, but got their logarithms",
        "The loss needs probabilities",
        _PROBABILITIES,
    ),
    ("Kullback-Leibler divergence", "softmax"): _Wrong(
        "the Kullback-Leibler divergence takes log-probabilities, but got probabilities",
        _LOGS_WANTED,
        _DIVERGENCE,
    ),
}
_RAW = _Wrong(
    "cross entropy takes probabilities here, but got the raw outputs of the last layer",
    "The loss needs probabilities",
    _KERAS,
)


class LossInput(DefaultRule):
    """Fires when a criterion gets probabilities instead of logits, or broadcast targets.

    Also for a softmax over the wrong axis, a single class, an error that is maximised, targets that the last
    layer cannot return, a dropout or a ReLU after the last layer, targets that learn, weights that favour the
    frequent class, a class that is left out, and for a generator and a discriminator that are told the same
    of what is generated.
    """

    cause = "loss input"
    needs = "the run does not show what the loss was computed from"
    advice: ClassVar[Advice] = {
        "loss input": (
            "Give cross entropy and binary cross entropy with logits the raw outputs of the last layer, "
            "without a softmax or sigmoid before them, and NLLLoss the result of log_softmax.",
            f"In Keras: {_KERAS[0].lower()}{_KERAS[1:]}",
            _SHAPES,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: dict[str, int] = {}
        self.of_opponents: list[Any] = []
        """What is wrong with the labels of opponents, and at which steps in a row it was so."""
        self.of_own_target: list[int] = []
        """The first saved steps in a row at which the target has a gradient."""
        self.weights = turned_weights.empty()
        """The weights of the classes, and how many labels of each were seen."""
        self.ignored = ignored_class.empty()

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        yield from self._of_opponents(seen)
        loss = seen.facts.get("loss")
        if not loss:
            self.looked = False
            return
        own = own_targets.found(self.of_own_target, seen.facts, seen.step)
        for arguments in (own, ignored_class.found(self.ignored, seen)):
            if arguments is not None:
                yield self.finding(**arguments)
        place = self._place(seen)
        found = dict(_problems(loss, _Output.of(seen, place), seen.step))
        if len(seen.facts.get("optimizers") or ()) == 1:
            found |= _maximised(loss)
        found |= _out_of_reach(seen, loss, place)
        found |= {what: _Problem(*said) for what, said in last_layer.found(seen, loss, place)}
        self.since = {what: self.since.get(what, seen.step) for what in found}
        for what, problem in found.items():
            yield self.finding(
                problem.message[:1].upper() + problem.message[1:],
                since=self.since[what],
                tensor=place,
                statistic="input of the loss",
                value=what,
                title=problem.title,
                why=problem.why,
                advice=(problem.advice,),
            )

        turned_weights.extend(self.weights, seen)
        for turned in turned_weights.found(self.weights):
            yield self.finding(
                turned.message,
                since=self.weights["since"],
                tensor=place,
                statistic="weight",
                value=turned.weight,
                limit=turned.wanted,
                title=turned_weights.TITLE,
                why=(turned.why,),
                advice=(turned.advice,),
            )

    def _of_opponents(self, seen: ObservedStep) -> Iterator[Finding]:
        labels = opponents.labels_in(seen.facts)
        problem = None if labels is None else opponents.problem_of(labels)
        if problem is None:
            self.of_opponents = []
            return
        steps = self.of_opponents[1] if self.of_opponents and self.of_opponents[0] == problem.key else []
        self.of_opponents = [problem.key, [*steps, seen.step][: opponents.LEAST_STEPS]]
        if len(self.of_opponents[1]) == opponents.LEAST_STEPS:
            yield self.finding(
                problem.message,
                since=self.of_opponents[1][0],
                tensor=problem.place,
                statistic="label",
                value=problem.key,
                title=problem.title,
                why=(problem.why,),
                advice=(problem.advice,),
            )

    def _place(self, seen: ObservedStep) -> str:
        """The model's output; of Keras's, the layer that returns the predictions."""
        outputs = seen.statistics("outputs")
        layers = [name for name in outputs.names if name.endswith("/outputs")] if outputs else []
        return layers[-1] if layers else Modules.of(seen).output


class _Output(NamedTuple):
    """What the loss was given, as far as it was saved."""

    shape: tuple[int, ...] = ()
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of(cls, seen: ObservedStep, name: str) -> _Output:
        outputs = seen.statistics("outputs")
        if outputs is None or name not in outputs:
            return cls()
        row = outputs.row(name)
        return cls(outputs.tensors[outputs.names.index(name)].shape, row["min"], row["max"])


class _Problem(NamedTuple):
    message: str
    title: str
    advice: str
    why: tuple[str, ...] = ()


def _problems(loss: Mapping[str, Any], output: _Output, step: int) -> Iterator[tuple[str, _Problem]]:
    for term in loss.get("terms") or ():
        criterion, given = str(term.get("criterion")), str(term.get("given"))
        if term.get("expects") == "probabilities":  # Keras, unless from_logits is set
            wrong = _RAW if given == "logits" else None
        else:
            wrong = _WRONG.get((criterion, given))
        if wrong is not None:
            advice = wrong.advice.format(criterion=criterion, given=given)
            why = _bounds(criterion, given, int(term.get("classes") or 0), loss.get("value"), step)
            why = why or _range(output, wrong)
            yield f"{given} before {criterion}", _Problem(wrong.message, wrong.title, advice, why)
        if term.get("normalised") and term.get("classes"):
            yield "softmax over another axis", _other_axis(term, loss.get("value"), step)
        if criterion == "cross entropy" and term.get("classes") == 1 and term.get("targets"):
            yield (
                "one class",
                _Problem(
                    "cross entropy over a single class is always 0",
                    "Cross entropy over a single class",
                    _ONE_CLASS,
                    (f"The {term['targets']} labels of this step have 1 class to choose from",),
                ),
            )
    shape = loss.get("broadcast")
    if shape:
        yield "broadcast", _broadcast(shape, output.shape)


def _maximised(loss: Mapping[str, Any]) -> dict[str, _Problem]:
    """Return what is wrong if the only term of a loss is an error, times a negative number."""
    terms: Sequence[Mapping[str, Any]] = loss.get("terms") or []
    factor = float(loss.get("factor") or 1.0)
    if len(terms) != 1 or factor >= 0 or "value" not in loss or terms[0].get("criterion") not in _ERRORS:
        return {}
    name = terms[0]["criterion"]
    return {
        "maximised": _Problem(
            f"the {name} is multiplied by {factor:g} before the backward pass: the optimizer makes it as "
            "large as it can",
            "The error is maximised",
            _MINUS,
            (f"The loss is {loss['value']:.4g}; {name} is 0 at best and rises from there",),
        )
    }


def _out_of_reach(seen: ObservedStep, loss: Mapping[str, Any], place: str) -> dict[str, _Problem]:
    """Return what is wrong if many targets lie outside of what the last layer of the model can return."""
    terms: Sequence[Mapping[str, Any]] = loss.get("terms") or []
    outputs, modules = seen.statistics("outputs"), Modules.of(seen)
    if len(terms) != 1 or outputs is None or place not in outputs or not modules.classes:
        return {}
    term, last = terms[0], list(modules.classes)[-1]
    kind, output = modules.classes[last], f"{last}_output_0"
    known = term.get("means") and term.get("of_a_layer") and term.get("target_rows", 0) >= _LEAST_TARGETS
    if not known or term.get("criterion") not in _REGRESSIONS or kind not in _RANGES or output not in outputs:
        return {}
    if outputs.row(output) != outputs.row(place) or _trains_others(seen):
        return {}  # something comes after that layer
    low, high = _RANGES[kind]
    mean = float(np.mean(term["means"]))
    spread = float(np.mean(np.square(term["means"])) - mean**2 + np.mean(term["variances"])) ** 0.5
    lowest, highest = float(term["lowest"]), float(term["highest"])
    is_below = mean < low + spread / 4 and lowest < low - spread
    is_above = mean > high - spread / 4 and highest > high + spread
    if not (is_below or is_above):
        return {}
    between = f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} and more"
    return {
        "targets out of reach": _Problem(
            f"the model ends with {modules.described(last)}, which returns {between}, and targets are "
            f"{lowest:.4g} to {highest:.4g}: it cannot return most of what it should",
            "Targets are out of the model's reach",
            _END.format(kind, between),
            (
                f"Targets have a mean of {mean:.4g} and a spread of {spread:.3g}, and the model returns "
                f"{between}",
            ),
        )
    }


def _trains_others(seen: ObservedStep) -> bool:
    """Whether an optimizer has weights of other models, such as those that are called after this step."""
    optimizers: Sequence[Mapping[str, Any]] = seen.facts.get("optimizers") or []
    return any(group.get("others") for optimizer in optimizers for group in optimizer.get("groups") or ())


def _other_axis(term: Mapping[str, Any], loss: float | None, step: int) -> _Problem:
    axis, length, classes = term["normalised"]["axis"], term["normalised"]["length"], int(term["classes"])
    is_batch = axis == 0
    over = f"the {length} rows of the batch" if is_batch else f"the {length} places along axis {axis}"
    now = "" if loss is None else f"; the loss is {loss:.4g} at step {step}"
    return _Problem(
        f"the softmax is taken over {over}, not over the {classes} classes: the probabilities of a row do "
        "not sum to 1",
        "Softmax over the batch" if is_batch else "Softmax over the wrong axis",
        _AXIS,
        (
            f"{length} values share a sum of 1, where {classes} classes should: guessing gives "
            f"{math.log(length):.4g}, not {math.log(classes):.4g}{now}",
        ),
    )


def _broadcast(shape: Sequence[int], output: tuple[int, ...]) -> _Problem:
    text, rows = " x ".join(map(str, shape)), int(shape[0])
    message = f"outputs and targets were broadcast to {text}: each output is compared with all targets"
    advice = _SHAPES
    if output == (rows, 1):
        message = f"outputs of [{rows}, 1] and targets of [{rows}] were broadcast to {text}: "
        advice = "Drop the last axis of the outputs, outputs.squeeze(1), or add one to the targets, "
        advice += "targets.unsqueeze(1)."
    elif output == (rows,):
        message = f"outputs of [{rows}] and targets of [{rows}, 1] were broadcast to {text}: "
        advice = "Drop the last axis of the targets, targets.squeeze(1), or add one to the outputs, "
        advice += "outputs.unsqueeze(1)."
    if message.endswith(": "):
        message += "each output is compared with all targets"
    return _Problem(
        message,
        "Outputs and targets have different shapes",
        advice,
        (f"The loss averages {math.prod(shape)} differences, and the batch has {rows} rows",),
    )


def _bounds(criterion: str, given: str, classes: int, loss: float | None, step: int) -> tuple[str, ...]:
    """What such a loss can still reach, against guessing; nothing where there is no bound."""
    now = "" if loss is None else f"; it is {loss:.4g} at step {step}"
    if criterion == "cross entropy" and given in ("softmax", "sigmoid") and classes > 1:
        least = math.log(1 + (classes - 1) / math.e)
        return (
            f"With {classes} classes this loss cannot fall below {least:.4g}; guessing gives "
            f"{math.log(classes):.4g}{now}",
        )
    if criterion == "binary cross entropy with logits" and given in ("softmax", "sigmoid"):
        return (
            f"The loss of a label 0 cannot fall below {math.log(2):.3g}, and that of a label 1 not below "
            f"{math.log(1 + 1 / math.e):.3g}{now}",
        )
    return ()


def _range(output: _Output, wrong: _Wrong) -> tuple[str, ...]:
    """What the outputs lie between, against what the loss takes."""
    if not math.isfinite(output.low + output.high):
        return ()
    taken = "log-probabilities are at most 0" if wrong.title == _LOGS_WANTED else "probabilities are 0 to 1"
    return (f"The outputs are {output.low:.3g} to {output.high:.3g}; {taken}",)
