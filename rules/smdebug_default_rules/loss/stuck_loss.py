"""A loss that does not fall: the model learns nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smdebug.files.observations import LOSS_SHOULD_FALL
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.arrays import rounded, where
from smdebug_default_rules.base import Advice, DefaultRule, Retired
from smdebug_default_rules.denoising import denoises
from smdebug_default_rules.loss import (
    constant_prediction,
    in_batch,
    repeated_value,
    same_loss,
    strong_dropout,
)
from smdebug_default_rules.loss.constant_prediction import CROSS_ENTROPY, YES_OR_NO
from smdebug_default_rules.loss_history import finite_losses, level, robust_spread, slope_score
from smdebug_default_rules.scales import large_targets, mean_square, poorly_scaled_inputs
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_LOSSES, LEAST_OF_SLOW = 150, 300
"""Two classes may need a boundary that takes long to find; of more classes, some pair is easy.

Hidden sigmoids begin with a plateau.
"""
LEAST_ROWS = 1000
"""This many rows have to be seen as well: with a row a step, 150 losses say little."""
MOST_BLOCKS = 64
WINDOW = 4
HALVED = 0.5
"""A sum of losses is judged if it was below this share of its start: its least value is not known."""
LEAST_SINCE, TIMES_AS_LONG = 10, 3
"""A loss that rose may fall again: so many blocks show it, or so many times the steps it took at first."""
LEARNT = 0.9
"""A loss whose mean over `WINDOW` blocks was below this share of its start had fallen, and has risen."""
CHANCE = 0.95
"""A cross entropy above this share of ln(classes) is that of guessing."""
CHANCE_OF_WEIGHTED = 0.99
"""The same where classes have weights: how far those and the shares of the labels lower it is not known."""
FALL = 0.02
SIGNIFICANT = 2.5
"""A slope of this many standard errors is not chance: the loss falls, if slowly."""
LEAST_ZEROS = 10
_ZERO, _ZERO_SQUARED = 1e-6, 1e-10
"""Below these, a divergence is 0, and a squared error as a share of the square of its targets."""
_ITSELF = (
    "Look at where the targets come from: a teacher or a reference that is the trained model itself, or a "
    "copy of it, gives what the model gives. Make the student another model, or load the teacher's weights."
)
_REPEATS = (
    "Look at some windows of a batch: the steps before the last one, and other features, have to differ "
    "from row to row. Then predict the change, target - last value, and add the last value to the output."
)
LEAST_OF_FORECAST = 400
LEAST_BESIDE_A_CONSTANT, LEAST_OF_A_DENOISER = 300, 1500
"""A model may need this many steps to bring its output to the height of the targets, or past a plateau.

Of noise, a denoiser can tell little before it knows how the data are shaped: a straight line from its input
to the velocity is no better than the mean.
"""


class Risen(NamedTuple):
    """A loss that had fallen and is back where it was."""

    since: int
    steps: int
    """For how many steps it has been so."""
    lowest: float
    """What it had fallen to."""
    falls: bool | None
    """Whether it falls again: not if it has had more time than it took at first; None of too few blocks."""


class StuckLoss(DefaultRule):
    """Fires when the cross entropy stays at chance, or another known loss at its first level.

    It also fires when the loss is no better than that of always predicting the same: the mean of the targets,
    or the shares of the classes. That is known of mean squared errors and cross entropies without weights.
    A forecast has to be better than the last value of its input, too.
    And it fires for an error that is zero from the first step on: the model is compared with itself; and for
    one of no known criterion that is the same number at 60 steps in a row, though batches and weights differ.
    A sum of several known losses is judged if it had halved and is back where it began.

    Losses that no known criterion computes, and those of several models that are trained against each other,
    are not judged: they need not fall. That of an imported run is, if its log shows a supervised training.
    """

    cause = "not learning"
    follows_scalars = True
    needs = "the run does not have one loss of known criteria that all of its optimizers follow"
    advice: ClassVar[Advice] = {
        "not learning": (
            "Check that inputs and labels belong together: look at some pairs of a batch, and for a shift, "
            "a sort or a shuffle of only one of the two.",
            "Try to overfit a single batch: if that fails, the "
            "fault is in the model or the loss, not in the data.",
        )
    }

    rest = Retired()

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self._begin()

    def _begin(self) -> None:
        """Begin with a training of which no loss was seen yet."""
        self.losses = loss_history.empty()
        self.blocks: list[float] = []
        self.block_size = 4
        self.block_steps: list[int] = []
        self.open_block = [0, 0.0, 0]
        """The number of losses in the block that is being filled, their sum, and the step of the first."""
        self.classes = 0
        self.rows = 0
        self.targets = constant_prediction.empty()
        self.forecasts = repeated_value.empty()
        self.same = same_loss.empty()
        self.several: list[list[Any]] = []
        """The criterion and the classes of each of several losses that are added up."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        if is_another := self.is_another_training(seen):
            self._begin()
        steps, values = finite_losses(seen, is_another=is_another)
        loss_history.extend(self.losses, steps, values)
        self._add_to_blocks(steps.astype(int).tolist(), values.tolist())
        same_loss.extend(self.same, seen, steps, values)
        facts = seen.facts
        loss = facts.get("loss") or {}
        terms = loss.get("terms") or []
        self.classes = max([self.classes, *(term.get("classes") or 0 for term in terms)])
        is_contrastive = in_batch.is_in_batch(terms)
        follow = _follow_one_loss(seen, terms)
        is_known = (len(terms) == 1 or is_contrastive) and follow
        is_sum = not is_known and follow and self._is_same_sum(terms)
        if len(terms) == 1 and self._is_zero(terms[0], facts.get("optimizers") or ()):
            yield self._compares_with_itself(terms[0])
            return
        if not is_known and not is_sum and not facts.get(LOSS_SHOULD_FALL):
            same = same_loss.found(self.same, seen)
            self.looked = same is not None
            if same is not None:
                yield self.finding(**same)
            return
        term = terms[0] if is_known else {}
        constant_prediction.add(self.targets, seen)
        repeated_value.add(self.forecasts, seen)
        is_slow = self.classes == 2 or _has_sigmoids(seen)
        least = LEAST_OF_SLOW if is_slow else LEAST_LOSSES
        self.rows = max(self.rows, int(term.get("rows") or 0))
        if self.losses["count"] < least or 0 < self.rows * self.losses["count"] < LEAST_ROWS:
            self.lacks("there are too few losses so far to judge whether they fall")
            return
        start = level(self.losses["first"])
        now = level(self.losses["last"])
        chance, share = math.nan, CHANCE
        if term.get("criterion") == CROSS_ENTROPY and self.classes > 1:
            chance = len(terms) * loss_history.guessing(loss, self.classes)
            share = CHANCE_OF_WEIGHTED if term.get("weighted") else CHANCE
            stuck = now > share * chance and now > (1 - FALL) * start
            what = f"guessing among {self.classes} classes gives {chance:.4g}"
        elif is_sum:
            stuck = now > (1 - FALL) * start and min(self.blocks) < HALVED * start
            what = "it is no better"
        else:
            stuck = abs(start - now) < FALL * abs(start) and loss_history.error_of_fall(
                self.losses
            ) < FALL * abs(start)
            what = "it has not changed"
        risen = self._risen(start if math.isnan(chance) else chance)
        falls = None if risen is None else risen.falls
        falls = slope_score(self.blocks) <= -SIGNIFICANT if falls is None else falls
        if not stuck or (falls and not (is_contrastive and in_batch.is_flat(self.blocks, chance))):
            yield from self._no_better_than_a_constant(seen)
            return
        since, count = self.losses["since"] or 0, self.losses["count"]
        if risen is not None:
            since, count = risen.since, risen.steps
            what += f", and it had fallen to {risen.lowest:.4g} before step {since}"
        if count >= least and (risen is not None or not is_sum):
            yield self.finding(
                f"The loss is {now:.4g} after {self.losses['count']} "
                f"steps, and was {start:.4g} at the start: {what}",
                since=since,
                tensor="loss",
                statistic="median of the last losses",
                value=now,
                limit=start if math.isnan(chance) else share * chance,
                **self._case(seen, risen is not None),
            )

    def _is_same_sum(self, terms: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the loss is a sum of the same criteria at all steps, one of them for labels of classes.

        Others, such as errors of values that a policy learns, may rise while the training goes well.
        """
        now = [[term.get("criterion"), term.get("classes")] for term in terms]
        self.several = self.several or now
        has_labels = any(term.get("criterion") == CROSS_ENTROPY and term.get("targets") for term in terms)
        return len(terms) > 1 and has_labels and now == self.several

    def _is_zero(self, term: Mapping[str, Any], optimizers: Sequence[Mapping[str, Any]]) -> bool:
        """Whether an error that is 0 at best was nothing but what rounding leaves from the first step on."""
        if any(optimizer.get("class") == "LBFGS" for optimizer in optimizers):
            return False  # whose first step may reach the solution
        criterion = term.get("criterion")
        least = _ZERO if criterion == "Kullback-Leibler divergence" else 0.0
        if criterion == constant_prediction.SQUARED and term.get("means"):
            least = _ZERO_SQUARED * mean_square(term)
        # The first may be of a training before, whose last steps were not saved.
        first, last = self.losses["first"][loss_history.FIRST - LEAST_ZEROS :], self.losses["last"]
        since = last[-(self.losses["count"] - loss_history.FIRST + LEAST_ZEROS) :]
        return len(first) == LEAST_ZEROS and least > 0 and max(map(abs, (*first, *since))) <= least

    def _compares_with_itself(self, term: Mapping[str, Any]) -> Finding:
        now = level(self.losses["last"])
        return self.finding(
            f"The loss was {now:.2g} from the first of {self.losses['count']} steps on: the outputs are what "
            "they are compared with, and there is nothing to learn",
            since=self.losses["since"] or 0,
            tensor="loss",
            statistic="median of the last losses",
            value=now,
            title="The loss is zero from the first step",
            why=(f"{now:.2g} at all {self.losses['count']} steps, of a {term['criterion']}",),
            advice=(_ITSELF,),
        )

    def _case(self, seen: ObservedStep, has_risen: bool = False) -> dict[str, Any]:
        """The numbers that convince, and what to try: dropout and scales come before the labels."""
        hints = [
            hint
            for hint in (
                in_batch.hint(seen),
                strong_dropout.hint(seen),
                large_targets(seen),
                poorly_scaled_inputs(seen),
            )
            if hint is not None
        ]
        advice = self.advice["not learning"]
        if has_risen:
            advice = (
                "Look at what changed where the loss rose: the learning rate, the data or a resume. "
                "Go back to a checkpoint before it.",
                *advice[1:],
            )
        return {
            "title": "The loss has risen to where it began" if has_risen else "",
            "why": (*(hint.why for hint in hints), self._progress()),
            "advice": (*(hint.advice for hint in hints), *advice)[:3],
        }

    def _progress(self) -> str:
        """By how much the loss fell, against how much it varies from step to step."""
        start, now = level(self.losses["first"]), level(self.losses["last"])
        course = f"fell by {(start - now) / abs(start):.1%}" if start > now else "did not fall"
        noise = robust_spread(self.losses["last"])
        return (
            f"In {self.losses['count']} steps the loss {course}; from step to step it varies by {noise:.2g}"
        )

    def _no_better_than_a_constant(self, seen: ObservedStep) -> Iterator[Finding]:
        least = LEAST_OF_A_DENOISER if denoises(seen) else LEAST_BESIDE_A_CONSTANT
        if self.losses["count"] < least:
            return
        factor = abs((seen.facts.get("loss") or {}).get("factor") or 1.0)
        found = constant_prediction.compared(self.targets)
        slope = slope_score(self.blocks[len(self.blocks) // 2 :])
        falls = slope <= -SIGNIFICANT
        risen = None if found is None else self._risen(found.constant * factor)
        if risen is not None and risen.steps >= LEAST_LOSSES:
            # What it was before does not count any more.
            found = constant_prediction.compared(self.targets, since=risen.since)
            falls = risen.falls is not False
        falls = falls or (found is not None and self._falls_below(found, risen, factor))
        if found is None or not found.is_no_better or falls:
            yield from self._no_better_than_the_last_value(slope)
            return
        name = constant_prediction.NAMES[self.targets["criterion"]]
        since, what = self.losses["since"] or 0, "the model has learnt nothing from its inputs"
        if risen is not None:
            since = risen.since
            what = f"it had fallen to {risen.lowest / factor:.4g} before step {since}"
        yield self.finding(
            f"The loss is {found.loss:.4g} after {self.losses['count']} steps, and always predicting the "
            f"same would give {found.constant:.4g}, {name}: {what}",
            since=since,
            tensor="loss",
            statistic="mean of the last losses",
            value=found.loss,
            limit=(1 - constant_prediction.GAIN) * found.constant,
            **self._case(seen, risen is not None),
        )

    def _falls_below(self, found: constant_prediction.Compared, risen: Risen | None, factor: float) -> bool:
        """Whether the losses of all steps, of which few are saved, are surely below that of the constant."""
        begin = max(self.losses["step"] / 2, 0 if risen is None else risen.since)
        losses = np.array(self.blocks)[np.array(self.block_steps) >= begin] / factor
        return found.is_surely_above(losses.tolist())

    def _no_better_than_the_last_value(self, slope: float) -> Iterator[Finding]:
        found = repeated_value.compared(self.forecasts)
        is_early = self.losses["count"] < LEAST_OF_FORECAST or slope <= -SIGNIFICANT
        if is_early or found is None or not found.is_no_better:
            return
        yield self.finding(
            f"The loss is {found.loss:.4g} after {self.losses['count']} steps, and repeating the last value "
            f"of each input would give {found.constant:.4g}: the model has learnt no more than that",
            since=self.losses["since"] or 0,
            tensor="loss",
            statistic="mean of the last losses",
            value=found.loss,
            limit=(1 - constant_prediction.GAIN) * found.constant,
            title="The forecast is no better than the last value",
            why=(f"Loss {found.loss:.4g}, and {found.constant:.4g} for the last value of each input",),
            advice=(_REPEATS, *self.advice["not learning"][:1]),
        )

    def _risen(self, untrained: float) -> Risen | None:
        """Since when a loss that was clearly lower in between is back at its start; None if it never was."""
        if len(self.blocks) < WINDOW:
            return None
        means = np.convolve(self.blocks, np.full(WINDOW, 1 / WINDOW), "valid")
        # A loss that exploded varies by more than it did while it was low.
        spread = min(map(robust_spread, (self.losses["first"], self.losses["last"])))
        noise = spread / (WINDOW * self.block_size) ** 0.5
        low = where(means < LEARNT * untrained - 2 * noise)
        if not low:
            return None
        window = np.array(self.blocks[low[-1] : low[-1] + WINDOW])
        after = low[-1] + where(window < LEARNT * untrained)[-1] + 1
        steps = (len(self.blocks) - after) * self.block_size + int(self.open_block[0])
        began = self.open_block[2] if self.open_block[0] else self.losses["step"]
        since = [*self.block_steps, int(began)][after]
        blocks = self.blocks[after:]
        has_time = steps > TIMES_AS_LONG * (low[0] + WINDOW) * self.block_size
        falls = None if len(blocks) < LEAST_SINCE else slope_score(blocks) <= -SIGNIFICANT
        falls = False if has_time else falls
        return Risen(since, steps, float(means.min()), falls)

    def _add_to_blocks(self, steps: list[int], values: list[float]) -> None:
        """Keep the means of all losses so far, in at most `MOST_BLOCKS` blocks of equal size."""
        count, total, began = self.open_block
        for step, value in zip(steps, values, strict=True):
            began = began if count else step
            count, total = count + 1, total + value
            if count < self.block_size:
                continue
            self.block_steps.append(int(began))
            self.blocks += rounded((total / count,))
            count, total = 0, 0.0
            if len(self.blocks) == MOST_BLOCKS:
                pairs = np.array(self.blocks).reshape(-1, 2).mean(1)
                self.blocks, self.block_steps = rounded(pairs.tolist()), self.block_steps[::2]
                self.block_size *= 2
        self.open_block = [count, total, began]


def _follow_one_loss(seen: ObservedStep, terms: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one optimizer, or all of several, change their parameters after one backward pass."""
    count = len(seen.facts.get("optimizers") or ())
    if count < 2:
        return count == 1
    table = Parameters.of(seen)
    if table is None or seen.facts.get("backward_passes") != 1:
        return False  # a generator and a discriminator have a pass each
    if len(terms) == 1 and (terms[0].get("criterion") in YES_OR_NO or terms[0].get("classes") == 2):
        return False  # they may share one, which is reversed on its way to one of them
    return {*range(count)} <= {*table.owners[table.update("abs_mean") > 0].tolist()}


def _has_sigmoids(seen: ObservedStep) -> bool:
    """Whether hidden layers end with sigmoids; the last layer may."""
    known: bool | None = seen.shared_by_layout.get("has sigmoids")
    if known is None:
        modules = Modules.of(seen)
        layers = [
            kind == "Sigmoid" or modules.activations.get(name) == "sigmoid"
            for name, kind in modules.classes.items()
        ]
        known = seen.shared_by_layout["has sigmoids"] = any(layers[:-1])
    return known
