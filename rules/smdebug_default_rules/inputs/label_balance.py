"""Labels of which nearly all are of one class, and a model that learns no more than that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.inputs import sampler_weights
from smdebug_default_rules.loss.constant_prediction import CROSS_ENTROPY, YES_OR_NO
from smdebug_default_rules.loss_history import finite_losses

LIMIT = 0.97
LEAST_TARGETS = 1000
LEAST_LOSSES = 120
STILL_FALLING = 0.9
"""Below this share of the losses before, the last ones still fall, and the rare class may yet be learnt."""
BETTER_THAN_GUESSING = 0.7
HALF, ROUNDING = 0.5, 1e-6
"""The mean at which yes is as common as no, and how far a variance may be from that of yes and no."""


SORTED_STEPS, MOST_SORTED = 6, 64
LEAST_ROWS, LEAST_CLASSES = 8, 3
SORTED_FOR_LONG, LEAST_CHANGES, APART = 24, 4, 4.0
"""Batches have ranges of their own if their means lie this many standard deviations of a batch apart."""
_SHUFFLE = (
    "Shuffle the rows before they are put into batches: shuffle=True of the DataLoader, or a permutation of "
    "rows and labels together at each epoch."
)
_LOST_CLASSES = "If the data has other classes, look for a filter, comparison or conversion that lost them."


class LabelBalance(DefaultRule):
    """Fires when one class has 97 % of the labels and the loss is that of always guessing it.

    It also fires when all labels are of one class, if the model ends with a layer that has others to choose,
    when rows come sorted, so that each batch has a class of its own, or a range of numbers of its own, and
    when a sampler draws the frequent classes more often still.
    """

    cause = "imbalance"
    follows_scalars = True
    needs = "no single loss over class labels was saved"
    advice: ClassVar[Advice] = {
        "imbalance": (
            "Weight the classes in the loss, or sample the rare ones more often.",
            "Judge the model by precision and recall of the rare class, not by accuracy.",
            _LOST_CLASSES,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.targets: dict[int, float] = {}
        self.total = 0
        self.losses = loss_history.empty()
        self.first: int | None = None
        self.alone: list[list[int]] = []
        """Step and class of the newest batches in a row that are sorted by class, or of one class."""
        self.is_mixed = False
        self.direction = 0
        self.ranges: list[list[float]] = []
        """Step, mean and standard deviation of the targets of the newest batches, all sorted one way."""
        self.drawn = sampler_weights.empty()
        """The weights of a sampler, and how many labels of each class were seen."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss_history.extend(self.losses, *finite_losses(seen))
        terms = (seen.facts.get("loss") or {}).get("terms") or []
        if len(terms) == 1:
            yield from self._sorted_numbers(seen, terms[0])
            sampler_weights.extend(self.drawn, seen, terms[0])
            favoured = sampler_weights.favours_frequent(self.drawn)
            if favoured is not None:
                yield self.finding(tensor="loss", **favoured)
        labels = _labels(terms[0], seen.facts) if len(terms) == 1 else None
        if labels is None:
            self.looked = len(self.ranges) >= SORTED_STEPS
            return
        count, largest, largest_share = labels
        self.targets[largest] = self.targets.get(largest, 0.0) + count * largest_share
        self.total += count
        self.first = seen.step if self.first is None else self.first
        yield from self._sorted(seen, terms[0])
        commonest = max(self.targets, key=lambda known: self.targets[known])
        share = self.targets[commonest] / self.total
        if share < LIMIT:
            return
        if self.total < LEAST_TARGETS or self.losses["count"] < LEAST_LOSSES:
            self.lacks("there are too few labels and losses so far to judge them")
            return
        if share >= 1 and "of_a_layer" in terms[0]:
            yield from self._all_alike(terms[0], commonest)
            return
        rare = max(1 - share, 1 / self.total)
        guessing = -(share * math.log(max(share, 1e-12)) + rare * math.log(rare))
        half = len(self.losses["last"]) // 2
        before, now = (
            sum(losses) / len(losses) for losses in (self.losses["last"][:half], self.losses["last"][half:])
        )
        if now < BETTER_THAN_GUESSING * guessing or now < STILL_FALLING * before:
            return
        yield self.finding(
            f"{share:.1%} of {self.total} labels are of class {commonest}, and the loss of "
            f"{now:.3g} is that of always "
            f"guessing it ({guessing:.3g})",
            since=self.first,
            tensor="loss",
            statistic="share of the commonest class",
            value=share,
            limit=LIMIT,
            why=(
                f"{round((1 - share) * self.total)} of {self.total} labels are of another class: "
                f"always guessing class {commonest} is right {share:.1%} of the time",
            ),
            advice=self.advice["imbalance"],
        )

    def _sorted(self, seen: ObservedStep, term: Mapping[str, Any]) -> Iterator[Finding]:
        """Judge batches of one class each, or of two that follow each other, from the first one on."""
        rows, classes = int(term.get("targets") or 0), int(term.get("classes") or 0)
        is_sorted = (
            term.get("of_a_layer") is True
            and rows == term.get("rows")
            and rows >= LEAST_ROWS
            and classes >= LEAST_CLASSES
            and round(float(term.get("changes", 1)) * (rows - 1))
            == int(term.get("classes_seen") or 0) - 1
            <= 1
        )
        self.is_mixed = self.is_mixed or not is_sorted
        if self.is_mixed:
            return
        self.alone = [*self.alone, [seen.step, int(term["largest_class"])]][-MOST_SORTED:]
        different = {known for _, known in self.alone}
        if len(self.alone) < SORTED_STEPS or len(different) < 2:
            return
        yield self.finding(
            f"Each of {len(self.alone)} saved batches has rows of one class, or of two in a row, and "
            f"{len(different)} classes were seen so far: the rows are sorted by class",
            since=self.first or 0,
            tensor="loss",
            statistic="classes of a batch",
            value=int(term["classes_seen"]),
            limit=classes,
            title="Each batch has a class of its own",
            why=(
                f"{term['classes_seen']} of {classes} classes in a batch of {rows} rows, at "
                f"{len(self.alone)} saved steps in a row",
            ),
            advice=(_SHUFFLE,),
        )

    def _sorted_numbers(self, seen: ObservedStep, term: Mapping[str, Any]) -> Iterator[Finding]:
        """Judge batches whose targets rise, or all fall, from row to row, each in a range of its own.

        The windows of a smooth wave do so for a while, too, so that the range has to begin again, as in a
        second epoch.
        """
        rows, rising = int(term.get("target_rows") or 0), term.get("ascending")
        if rising is None or self.is_mixed:
            return
        changes = float(term.get("changes", 0))
        falls = rising + changes <= 1 + 2 * ROUNDING
        is_sorted = (
            (rising == 1 or falls) and round(changes * (rows - 1)) >= LEAST_CHANGES and term.get("means")
        )
        self.direction = self.direction or (1 if rising == 1 else -1)
        if not is_sorted or (rising == 1) != (self.direction == 1):
            self.is_mixed = True
            return
        mean, spread = float(term["means"][0]), float(term["variances"][0]) ** 0.5
        self.ranges = [*self.ranges, [seen.step, mean, spread]][-MOST_SORTED:]
        means = [known for _, known, _ in self.ranges]
        usual = sum(known for _, _, known in self.ranges) / len(self.ranges)
        apart = max(means) - min(means)
        begins_again = any((later - before) * self.direction < -usual for before, later in pairwise(means))
        is_long = len(self.ranges) >= (SORTED_STEPS if begins_again else SORTED_FOR_LONG)
        if not (is_long and apart > APART * usual > 0):
            return
        yield self.finding(
            f"The targets of each of {len(self.ranges)} saved batches are in order, and their means lie "
            f"{apart:.3g} apart where a batch spreads by {usual:.2g}: the rows are sorted by their targets",
            since=int(self.ranges[0][0]),
            tensor="loss",
            statistic="distance of the means of batches over the spread of a batch",
            value=apart / usual,
            limit=APART,
            title="Each batch has a range of targets of its own",
            why=(
                f"All {rows} targets of a batch are in order, at {len(self.ranges)} saved steps in a row; "
                f"batches differ by {apart / usual:.1f} times their spread",
            ),
            advice=(_SHUFFLE,),
        )

    def _all_alike(self, term: Mapping[str, Any], commonest: int) -> Iterator[Finding]:
        """Yield what is found if all labels are of one class, unless that is how the loss is made.

        In contrastive learning, choices are computed from each other, and the first is always right.
        """
        is_of_one_unit = term.get("criterion") == CROSS_ENTROPY and term.get("classes") == 1
        if not term["of_a_layer"] or is_of_one_unit:
            return
        now = sum(self.losses["last"]) / len(self.losses["last"])
        yield self.finding(
            f"All {self.total} labels are of class {commonest}: the loss of {now:.3g} comes from always "
            "guessing it, and the model has no other class to learn",
            since=self.first or 0,
            tensor="loss",
            statistic="share of the commonest class",
            value=1.0,
            limit=LIMIT,
            title="All labels are of one class",
            why=(f"{self.total} labels, 1 class",),
            advice=(
                "Look for a filter, a comparison or a conversion that lost the other classes, such as a "
                "label file that is sorted and cut off.",
            ),
        )


def _labels(term: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[int, int, float] | None:
    """How many labels a step has, the commonest class, and its share; None if they are not classes."""
    if term.get("targets"):
        return term["targets"], term["largest_class"], term["largest_share"]
    if term.get("criterion") not in YES_OR_NO or term.get("columns") != 1 or not term.get("means"):
        return None
    # A discriminator has a pass for what is real and one for what is not.
    if len(facts.get("optimizers") or ()) != 1 or facts.get("backward_passes", 1) != 1:
        return None
    (mean,), (variance,) = term["means"], term["variances"]
    if not 0 <= mean <= 1 or abs(variance - mean * (1 - mean)) > ROUNDING:
        return None
    return term["target_rows"], int(mean >= HALF), max(mean, 1 - mean)
