"""The same rows again: within a batch, or step after step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.boosting import is_boosted
from smdebug_default_rules.inputs import repeated_noise, repeated_time, sampler_weights, shared_noise

LEAST_ROWS = 8
MOST_ROWS_OF_A_BATCH = 256
"""This many equal rows at every step are more often a small data set than a batch."""
LEAST_FEATURES = 4
"""Points of fewer coordinates are drawn on purpose, as a whole."""
DUPLICATES = 0.5
"""Above this share of distinct rows, chance and sampling with replacement explain the duplicates."""
LEAST_STEPS = 3
"""A single batch may repeat rows on purpose, such as pairs that a loss compares."""
LEAST_VALUES = 16
"""Rows of fewer distinct values than this repeat by themselves."""


_NEW_BATCH = (
    "Draw a new batch at every step: look for an iterator that is made anew for each step, or a batch kept "
    "in a variable."
)
_SEEDS = (
    "Seed each worker of the data loader separately (worker_init_fn), so that they do not all return the "
    "same rows."
)
_VIEWS = (
    "Augment each view by itself: call the transform twice for each image, and give the model both results. "
    "Look for one view that is used twice, and for a seed that is set before each of the two calls."
)
_PREPARED = "Look at what prepares the inputs: a scaling, a mask or a file that was not read."


class RepeatedInput(DefaultRule):
    """Fires when all batches are bit-equal, half of a batch's rows are copies, or all values are equal.

    Also when the noise that a model has to tell from its inputs, as that of a diffusion, is the same at each
    step or in all rows of a batch, when the time of a diffusion or a flow is the same in all rows of all
    steps, and when a contrastive loss compares each row with itself, as both views are the same. And when a
    sampler has a weight for each class in place of each row, so that it draws the first rows alone.
    """

    cause = "repeated input"
    needs = "no input of the model was saved"
    advice: ClassVar[Advice] = {
        "repeated input": (
            _NEW_BATCH,
            _SEEDS,
            f"If all values are equal, {_PREPARED[0].lower()}{_PREPARED[1:]}",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.last: list[int] = []
        self.changed = False
        self.equal_since: int | None = None
        self.equal_steps = 1
        self.duplicates: list[int] = []
        self.constant: list[int] = []
        self.views: list[int] = []
        """The first of the saved steps in a row at which both views of each row were equal."""
        self.noise = repeated_noise.empty()
        """What is known of noise that is the target of the loss."""
        self.shared = shared_noise.empty()
        """What the rows of each batch have in common, of such noise."""
        self.time = repeated_time.empty()
        """What is known of the time of a diffusion."""
        self.few_since: int | None = None
        """Since when a sampler has too few weights."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        inputs = seen.statistics("inputs")
        if inputs is None:
            self.looked = False
            return
        if is_boosted(seen):
            self.lacks("XGBoost trains on the same rows in every round")
            return
        if not seen.facts.get("shapes"):
            self.lacks("the shapes of the model's inputs were not saved")
        name = inputs.names[0]
        if self._is_constant(seen):
            if len(self.constant) >= LEAST_STEPS:
                value = float(inputs.column("max")[0])
                yield self.finding(
                    f"All {int(inputs.column('count')[0])} values of "
                    f"{name} are {value:g}: the inputs carry no information",
                    since=self.constant[0],
                    tensor=name,
                    statistic="spread",
                    value=0.0,
                    limit="> 0",
                    title="Inputs are all the same value",
                    why=(
                        f"Smallest and largest value are {value:g}, at "
                        f"{len(self.constant)} saved steps in a row",
                    ),
                    advice=(_PREPARED,),
                )
            return
        yield from self._equal_batches(seen, name)
        yield from self._equal_views(seen, name)
        few = sampler_weights.too_few(seen.facts)
        if few is None:
            self.few_since = None
            if not self.views:  # the rows that are there twice are those of both views
                yield from self._equal_rows(seen, name)
        else:
            self.few_since = seen.step if self.few_since is None else self.few_since
            yield self.finding(since=self.few_since, tensor=name, **few)
        yield from self._equal_noise(seen)
        yield from self._shared_noise(seen)
        repeated_time.extend(self.time, seen)
        if time := repeated_time.found(self.time, seen):
            yield self._equal_times(time)

    def _is_constant(self, seen: ObservedStep) -> bool:
        """Whether all values of the only input are the same, where a known loss compares with targets."""
        inputs, shapes = seen.statistics("inputs"), seen.facts.get("shapes") or []
        terms = (seen.facts.get("loss") or {}).get("terms")
        is_constant = (
            inputs is not None
            and "float" in inputs.tensors[0].dtype
            and bool(terms)
            and len(shapes) == 1
            and len(shapes[0]) > 1
            and shapes[0][0] >= LEAST_ROWS
            and inputs.column("min")[0] == inputs.column("max")[0]
        )
        self.constant = [*self.constant, seen.step][:LEAST_STEPS] if is_constant else []
        return is_constant

    def _equal_batches(self, seen: ObservedStep, name: str) -> Iterator[Finding]:
        digest = seen.digests("inputs").get(name)
        if digest is None:
            return
        before, self.last = self.last, list(digest)
        if before and before != self.last:
            self.changed = True
        if not before or self.changed or not _is_a_batch(seen):
            return
        self.equal_since = seen.step if self.equal_since is None else self.equal_since
        self.equal_steps += 1
        rows = seen.facts["shapes"][0][0]
        yield self.finding(
            f"{name} is bit-equal at all saved steps so far: "
            f"the training gets the same {rows} rows each time",
            since=self.equal_since,
            tensor=name,
            statistic="digest of the input",
            value="equal",
            title="Every step trains on the same batch",
            why=(f"1 batch of {rows} rows at {self.equal_steps} saved steps",),
            advice=(_NEW_BATCH,),
        )

    def _equal_noise(self, seen: ObservedStep) -> Iterator[Finding]:
        repeated_noise.extend(self.noise, seen)
        if not repeated_noise.found(self.noise, seen):
            return
        steps, (lowest, highest) = self.noise["steps"], self.noise["targets"][:2]
        yield self.finding(
            f"The targets of the loss are noise, and the same values at {steps} saved steps in a row, from "
            f"{lowest:.6g} to {highest:.6g}, while the inputs differ: the model learns this noise by heart",
            since=self.noise["since"],
            tensor="loss",
            statistic="targets",
            value="equal",
            title=repeated_noise.TITLE,
            why=(f"1 noise at {steps} saved steps, from {lowest:.6g} to {highest:.6g} at each",),
            advice=(repeated_noise.ADVICE,),
        )

    def _shared_noise(self, seen: ObservedStep) -> Iterator[Finding]:
        shared_noise.extend(self.shared, seen)
        share = shared_noise.found(self.shared)
        if share is None:
            return
        rows, steps = self.shared["rows"], self.shared["steps"]
        yield self.finding(
            f"The {rows} rows of a batch have {share:.0%} of the variance of their targets in common: one "
            "noise is drawn for all of them",
            since=self.shared["since"],
            tensor="loss",
            statistic="share of the variance that rows have in common",
            value=share,
            limit=shared_noise.LEAST_SHARED,
            title=shared_noise.TITLE,
            why=(
                f"{share:.0%} in common over {steps} saved steps; rows with noise of their own have "
                f"{1 / rows:.0%}",
            ),
            advice=shared_noise.ADVICE,
        )

    def _equal_times(self, time: repeated_time.Time) -> Finding:
        return self.finding(
            f"All rows of {time.name} were {time.value:.4g} at {time.steps} saved steps in a row, while the "
            "noisy rows beside it differ: the model learns a single level of noise",
            since=time.since,
            tensor=time.name,
            statistic="times",
            value=1,
            title=repeated_time.TITLE,
            why=(f"1 value, {time.value:.4g}, in all rows of {time.steps} saved steps",),
            advice=repeated_time.ADVICE,
        )

    def _equal_views(self, seen: ObservedStep, name: str) -> Iterator[Finding]:
        pairs = (seen.facts.get("loss") or {}).get("positives")
        if not pairs:
            return
        looked, equal = pairs["looked"], pairs["equal"]
        self.views = [*self.views, seen.step][:LEAST_STEPS] if looked and equal == looked else []
        if len(self.views) >= LEAST_STEPS:
            yield self.finding(
                f"The contrastive loss compares each row of {name} with itself: the codes of both views are "
                "equal, and there is nothing to learn from them",
                since=self.views[0],
                tensor=name,
                statistic="pairs of equal codes",
                value=equal,
                limit=looked,
                title="Both views of a row are the same",
                why=(
                    f"{equal} of {looked} pairs of codes that were compared are equal, at {len(self.views)} "
                    "saved steps in a row",
                ),
                advice=(_VIEWS,),
            )

    def _equal_rows(self, seen: ObservedStep, name: str) -> Iterator[Finding]:
        shapes, distinct = seen.facts.get("shapes"), seen.facts.get("distinct_rows")
        if not shapes or not shapes[0] or not isinstance(distinct, int):
            return
        rows = shapes[0][0]
        few = rows >= LEAST_ROWS and distinct <= DUPLICATES * rows
        if not few or not _compares_labels(seen.facts.get("loss")) or not _varies(seen, name):
            self.duplicates = []
            return
        self.duplicates = [*self.duplicates, seen.step][:LEAST_STEPS]
        if len(self.duplicates) >= LEAST_STEPS:
            yield self.finding(
                f"Only {distinct} of the {rows} rows of {name} are distinct",
                since=self.duplicates[0],
                tensor=name,
                statistic="share of distinct rows",
                value=distinct / rows,
                limit=DUPLICATES,
                title="Batches contain the same rows several times",
                why=(
                    f"{rows} rows, {distinct} distinct: {distinct / rows:.0%}, where chance leaves above 50%",
                ),
                advice=(_SEEDS, _NEW_BATCH),
            )


def _is_a_batch(seen: ObservedStep) -> bool:
    """Whether this looks like a batch of a classification, and not like a whole small data set.

    Full-batch training gives the model the same rows on purpose. A batch has a power of two of rows, not too
    many, and one input of several features; chance gives its classes different shares.
    """
    shapes = seen.facts.get("shapes") or []
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    optimizers = [optimizer.get("class") for optimizer in seen.facts.get("optimizers") or ()]
    if len(shapes) != 1 or not shapes[0] or "LBFGS" in optimizers:
        return False
    rows = shapes[0][0]
    is_power = rows & (rows - 1) == 0
    labelled = [term for term in terms if term.get("targets")]
    return (
        LEAST_ROWS <= rows <= MOST_ROWS_OF_A_BATCH
        and is_power
        and math.prod(shapes[0][1:]) >= LEAST_FEATURES
        and any(labelled)
        and not any(_is_balanced(term) for term in labelled)
    )


def _compares_labels(loss: Mapping[str, Any] | None) -> bool:
    """Whether a loss compares with labels, or is an error as a whole, or nothing is known of it.

    Others may need copies, as of a state in which a policy tries several actions: an error of values may be
    a part of them.
    """
    if not loss:
        return True
    return "value" in loss or any(term.get("targets") for term in loss.get("terms") or ())


def _is_balanced(term: Mapping[str, Any]) -> bool:
    """Whether all classes have the same number of labels, as those of a data set that was made for it."""
    seen, share = term.get("classes_seen") or 0, term.get("largest_share") or 0.0
    return bool(seen > 1 and seen * share < 1 + 1e-6)


def _varies(seen: ObservedStep, name: str) -> bool:
    """Whether the input has so many distinct values that equal rows cannot be chance."""
    matrix = seen.statistics("inputs")
    if matrix is None or "float" not in matrix.tensors[0].dtype:
        return False
    if matrix.column("non_finite")[0] > 0:
        return False
    sample = seen.samples("inputs").get(name)
    return sample is not None and np.unique(sample[np.isfinite(sample)]).size >= LEAST_VALUES
