"""Weights of classes that grow with their counts, as where a quotient of counts is turned round.

A weight makes up for a class that is rare. One that is the odds of the class themselves, where it was to be
their inverse, lets the model leave the class out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep

LEAST_COUNTED = 25
"""So many labels of each of two kinds have to be seen."""
LEAST_ODDS = 5.0
"""Of kinds that are less apart, a small weight may be wanted."""
CLOSE, BY_CHANCE = math.log(1.2), 2.0
"""A weight is so near to the odds, beside so many standard deviations of the odds that were counted."""
TITLE = "The weights favour the frequent class"
_OF_POSITIVES = (
    "Divide the other way round: pos_weight is the count of the negatives over that of the positives, above "
    "1 where positives are rare."
)
_OF_CLASSES = "Give rare classes the large weights, such as counts.sum() / (len(counts) * counts)."


class Kind(NamedTuple):
    """A class, or the positives of one kind of label, as counted so far."""

    number: int
    weight: float
    labels: int
    others: int
    """Labels that are not of it; 0 where its count is compared with those of the other classes."""

    @property
    def logarithm(self) -> float:
        """The logarithm of its odds, or of its count."""
        return math.log(self.labels / (self.others or 1))

    @property
    def excess(self) -> float:
        """By how much the logarithm of its weight is above it."""
        return math.log(self.weight) - self.logarithm

    @property
    def tolerance(self) -> float:
        """How much that may be for a weight that was computed of all labels, and not of these."""
        return CLOSE + BY_CHANCE * math.sqrt(1 / self.labels + (1 / self.others if self.others else 0))


class Turned(NamedTuple):
    """What is wrong, in words."""

    message: str
    why: str
    advice: str
    weight: float
    wanted: float


def empty() -> dict[str, Any]:
    """What is kept of weights of which nothing was seen yet, as plain data."""
    return {"weights": [], "counts": [], "labels": 0, "since": 0, "of_classes": False}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add the labels of a step; other weights begin anew."""
    for term in (seen.facts.get("loss") or {}).get("terms") or ():
        weights: Sequence[float] = term.get("weights") or ()
        counted = _counted(term, len(weights))
        if not weights or counted is None:
            continue
        counts, labels, of_classes = counted
        known = kept["weights"]
        is_same = len(known) == len(weights) and all(map(math.isclose, known, weights))
        if not is_same or kept["of_classes"] != of_classes:
            kept.update(empty(), weights=[*weights], counts=[0] * len(weights), since=seen.step)
            kept["of_classes"] = of_classes
        kept["counts"] = [before + count for before, count in zip(kept["counts"], counts, strict=True)]
        kept["labels"] += labels
        return


def found(kept: Mapping[str, Any]) -> Iterator[Turned]:
    """Yield what is wrong with weights that are the odds or the counts that they should make up for."""
    of_classes, labels = kept["of_classes"], kept["labels"]
    kinds = [
        Kind(number, weight, count, 0 if of_classes else labels - count)
        for number, (weight, count) in enumerate(zip(kept["weights"], kept["counts"], strict=True))
        if weight > 0 and count >= LEAST_COUNTED and (of_classes or labels - count >= LEAST_COUNTED)
    ]
    if len(kinds) < 1 + of_classes:
        return
    logarithms = [kind.logarithm for kind in kinds]
    apart = max(logarithms) - min(logarithms) if of_classes else max(map(abs, logarithms))
    middle = sorted(kind.excess for kind in kinds)[len(kinds) // 2] if of_classes else 0.0
    if apart >= math.log(LEAST_ODDS) and all(abs(kind.excess - middle) <= kind.tolerance for kind in kinds):
        yield _of_classes(kinds) if of_classes else _of_positives(kinds, len(kept["counts"]))


def _counted(term: Mapping[str, Any], weights: int) -> tuple[Sequence[int], int, bool] | None:
    """The labels of each weight, the labels in all, and whether the weights are those of classes."""
    positives, labels = term.get("positives"), term.get("labels")
    if positives and labels and len(positives) == weights:
        return positives, labels, False
    counts = dict(term.get("counts") or ())
    if not counts or term.get("criterion") != "cross entropy" or max(counts) >= weights:
        return None
    return [counts.get(number, 0) for number in range(weights)], sum(counts.values()), True


def _of_positives(kinds: Sequence[Kind], columns: int) -> Turned:
    kind = max(kinds, key=lambda kind: abs(kind.logarithm))
    share = kind.labels / (kind.labels + kind.others)
    which = "" if columns == 1 else f" of column {kind.number}"
    return Turned(
        f"pos_weight{which} is {kind.weight:.3g}, the positives over the negatives, while {share:.1%} of the "
        "labels are positive: it makes the rarer labels count less still",
        f"{kind.labels:,} positive and {kind.others:,} negative labels so far: "
        f"{kind.others / kind.labels:.3g} would make up for them, not {kind.weight:.3g}",
        _OF_POSITIVES,
        kind.weight,
        kind.others / kind.labels,
    )


def _of_classes(kinds: Sequence[Kind]) -> Turned:
    rare, frequent = (pick(kinds, key=lambda kind: kind.labels) for pick in (min, max))
    wanted = frequent.weight * frequent.labels / rare.labels
    times, heavier = frequent.labels / rare.labels, frequent.weight / rare.weight
    return Turned(
        f"The weights of the classes grow with their counts: class {frequent.number}, of which there are "
        f"{times:.3g} times as many labels, weighs {heavier:.3g} times as much as class {rare.number}",
        f"{frequent.labels:,} labels of class {frequent.number} weigh {frequent.weight:.3g} each, and "
        f"{rare.labels:,} of class {rare.number} {rare.weight:.3g}",
        _OF_CLASSES,
        rare.weight,
        wanted,
    )
