"""What a loss would be if the model always predicted the same: the best constant, for the targets so far.

A model whose loss is no lower has learnt nothing from its inputs, whatever its targets are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded

MOST_SAMPLES = 32
LEAST_SAMPLES, LEAST_ROWS = 10, 500
ROWS_A_CLASS = 20
"""With fewer rows of each class, shares of classes are not known well enough."""
GAIN = 0.02
"""A loss lower than that of the constant by less than this share is no better."""
SURE = 3.0
"""A gain of this many standard errors is a gain, however small."""
FAR = 1.1
"""Above this, a model has not reached the constant yet, which absolute errors approach at a steady pace."""
_LEAST_LOSS = 1e-3
"""Below this share of their square (or in nats), targets have nothing to be learnt."""
SQUARED, CROSS_ENTROPY = "mean squared error", "cross entropy"
ABSOLUTE = ("mean absolute error", "smooth L1", "Huber")
YES_OR_NO = ("binary cross entropy", "binary cross entropy with logits")
NAMES = {
    SQUARED: "the variance of the targets",
    **dict.fromkeys(ABSOLUTE, "the error of their median"),
    **dict.fromkeys((CROSS_ENTROPY, *YES_OR_NO), "the entropy of the labels"),
}


class Sample(NamedTuple):
    """One step's loss beside that of the constant, for the same rows."""

    step: int
    loss: float
    constant: float
    rows: int


class Compared(NamedTuple):
    """The loss over several steps beside that of the constant."""

    loss: float
    constant: float
    error: float
    """The standard error of their difference."""
    steps: int
    doubt: float = 0.0
    """The standard error of what the constant costs: labels of other rows would give another."""

    @property
    def is_no_better(self) -> bool:
        """Whether the loss is that of the constant, or above it."""
        gain = self.constant - self.loss
        return gain < GAIN * self.constant and gain < SURE * self.error

    def is_surely_above(self, losses: Sequence[float]) -> bool:
        """Whether these are surely lower: losses of all steps, not of the saved ones alone."""
        if len(losses) < LEAST_SAMPLES:
            return False
        mean, error = _mean_and_error(losses)
        return self.constant - mean > SURE * math.hypot(error, self.doubt)


def empty() -> dict[str, Any]:
    """What is kept of targets of which nothing was seen yet."""
    return {"criterion": "", "rows": 0, "counts": {}, "means": [], "variances": [], "samples": []}


def why_unknown(seen: ObservedStep) -> str:
    """Why the loss of a constant prediction is not known at a step; "" if it is."""
    loss = seen.facts.get("loss") or {}
    terms = loss.get("terms") or []
    if len(terms) != 1 or "value" not in loss:
        return "the loss is not one known criterion alone"
    term = terms[0]
    if term.get("criterion") not in NAMES:
        return f"what a constant prediction costs is not known for this criterion ({term.get('criterion')})"
    is_of_logits = term.get("expects") != "probabilities"
    if term.get("weighted") or (is_of_logits and term.get("given") in ("softmax", "log-softmax")):
        return "the criterion has weights, or was not given what it expects"
    if not term.get("of_a_layer"):
        return "the criterion was not given the result of a layer"
    if term.get("reduction") not in ("mean", "sum"):
        return "the reduction of the criterion is not known"
    if _is_of_classes(term):
        return "" if term.get("counts") else "the classes of the labels were not saved"
    if not term.get("means") or term.get("target_rows") != term.get("rows"):
        return "the means of the targets were not saved"
    if term["criterion"] in ABSOLUTE and "constant" not in term:
        return "the error of the targets' median was not saved"
    if term["criterion"] in YES_OR_NO and not 0 <= term["lowest"] <= term["highest"] <= 1:
        return "the labels are not between 0 and 1"
    return ""


def add(kept: MutableMapping[str, Any], seen: ObservedStep, most: int = MOST_SAMPLES) -> None:
    """Add the targets of a step, and its loss, to what is kept; nothing if they are not known.

    The losses of the last steps are kept, `most` of them.
    """
    if why_unknown(seen):
        return
    loss = seen.facts["loss"]
    (term,) = loss["terms"]
    width = 0 if _is_of_classes(term) else len(term["means"])
    if kept["criterion"] != term["criterion"] or len(kept["means"]) != width:
        kept.update(empty(), criterion=term["criterion"])
    if _is_of_classes(term):
        rows, values = int(term["targets"]), int(term["targets"])
        _add_counts(kept, term["counts"])
    else:
        rows = int(term["target_rows"])
        values = rows * width
        _add_columns(kept, rows, term["means"], term["variances"])
    value = loss["value"] / (loss.get("factor") or 1.0)
    value = value / values if term["reduction"] == "sum" else value
    sample = [seen.step, *rounded((value, _cost(kept, term))), rows]
    kept["samples"] = [*kept["samples"], sample][-most:]


def compared(kept: Mapping[str, Any], since: int = 0) -> Compared | None:
    """Compare the losses of the second half of the training so far, from `since` on; None of too few."""
    samples = [Sample(*sample) for sample in kept["samples"]]
    if not samples:
        return None
    begin = max(samples[-1].step / 2, since)
    samples = [sample for sample in samples if sample.step >= begin]
    rows = sum(sample.rows for sample in samples)
    if len(samples) < LEAST_SAMPLES or rows < max(LEAST_ROWS, ROWS_A_CLASS * len(kept["counts"])):
        return None
    loss, constant = (sum(values) / len(samples) for values in list(zip(*samples, strict=True))[1:3])
    if constant < _least(kept):
        return None
    if kept["criterion"] in ABSOLUTE and loss > FAR * constant:
        return None
    _, error = _mean_and_error([sample.constant - sample.loss for sample in samples])
    _, doubt = _mean_and_error([sample.constant for sample in samples])
    return Compared(loss, constant, error, len(samples), doubt)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))


def _least(kept: Mapping[str, Any]) -> float:
    if kept["criterion"] not in (SQUARED, *ABSOLUTE):
        return _LEAST_LOSS
    squares = [
        mean * mean + variance for mean, variance in zip(kept["means"], kept["variances"], strict=True)
    ]
    square = sum(squares) / len(squares)
    return float(_LEAST_LOSS * square**0.5 if kept["criterion"] != SQUARED else _LEAST_LOSS**2 * square)


def _is_of_classes(term: Mapping[str, Any]) -> bool:
    return bool(term.get("criterion") == CROSS_ENTROPY)


def _add_counts(kept: MutableMapping[str, Any], counts: Sequence[Sequence[int]]) -> None:
    known = {int(name): count for name, count in kept["counts"].items()}
    for name, count in counts:
        known[name] = known.get(name, 0) + count
    kept["counts"] = known
    kept["rows"] += sum(count for _, count in counts)


def _add_columns(
    kept: MutableMapping[str, Any], rows: int, means: Sequence[float], variances: Sequence[float]
) -> None:
    """Pool the means and variances of columns with those of the batches before."""
    before = kept["rows"]
    total = before + rows
    old = kept["means"] or [0.0] * len(means), kept["variances"] or [0.0] * len(means)
    pooled = []
    for mean, variance, new_mean, new_variance in zip(*old, means, variances, strict=True):
        apart = new_mean - mean
        pooled.append(
            (
                mean + apart * rows / total,
                (variance * before + new_variance * rows + apart**2 * before * rows / total) / total,
            )
        )
    kept["means"], kept["variances"] = ([*column] for column in zip(*pooled, strict=True))
    kept["rows"] = total


def _cost(kept: Mapping[str, Any], term: Mapping[str, Any]) -> float:
    """What the best constant for all targets so far costs for those of one step."""
    if _is_of_classes(term):
        total = kept["rows"]
        cost = -sum(count * math.log(kept["counts"][name] / total) for name, count in term["counts"])
        return float(cost / term["targets"])
    if term["criterion"] in ABSOLUTE:  # of the median of these rows, which is closer to them than that of all
        return float(term["constant"] * (1 + 1 / term["target_rows"]))
    costs = []
    for mean, variance, constant in zip(term["means"], term["variances"], kept["means"], strict=True):
        if term["criterion"] == SQUARED:
            costs.append(variance + (mean - constant) ** 2)
        else:
            costs.append(-_times_log(mean, constant) - _times_log(1 - mean, 1 - constant))
    return float(sum(costs) / len(costs))


def _times_log(share: float, constant: float) -> float:
    return share * math.log(constant) if share > 0 and constant > 0 else 0.0
