"""Codes and embeddings that are the same for every input, and so say nothing about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules

LEAST_STEPS = 8
"""A collapse is reported after this many saved steps in a row that show it."""
LEAST_APART = 50
"""The first and the last of them are at least this many steps apart."""
NO_CODE = 0.005
"""The divergence in nats that every latent dimension stays below if the posterior has collapsed."""
ALIKE = 0.98
"""The mean cosine of two embeddings, at least, if they have collapsed."""
APART = 5.0
"""The embeddings were so many times further apart before."""
SHRUNK = 400.0
"""The variance of the targets was so many times larger before."""
LEAST_COLUMNS = 4
_DISTANCES = frozenset(("mean squared error", "smooth L1", "Huber"))

_LATENT, _EMBEDDING, _TARGETS = "latent", "embedding", "targets"
_WEIGH = (
    "Lower the weight of the divergence, or raise it slowly from 0 (annealing, free bits), and reduce both "
    "terms over the same axes: a divergence that is summed outweighs an error that is averaged."
)
_NEGATIVES = (
    "Give the loss something that keeps inputs apart: negatives (InfoNCE), a term for variance and "
    "covariance (VICReg), or a predictor and detach() of the other view (SimSiam, BYOL)."
)


class CollapsedRepresentation(DefaultRule):
    """Fires when a latent code, or embeddings that a loss compares, hardly depend on the input.

    A posterior has collapsed if no latent dimension differs from the prior. Embeddings have collapsed if
    they point in one direction, or if those that serve as targets have lost their variance, and were apart
    before.
    """

    cause = "collapsed representation"
    needs = "the loss is computed neither from a latent distribution nor from embeddings"
    advice: ClassVar[Advice] = {"collapsed representation": (_NEGATIVES, _WEIGH)}

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, int] = {}
        self.since: dict[str, int] = {}
        self.best: dict[str, float] = {}
        """The largest divergence, distance and variance so far."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss = seen.facts.get("loss") or {}
        numbers = measured(loss)
        if not numbers:
            self.looked = False
            return
        if self.is_another_training(seen):
            self.steps, self.since, self.best = {}, {}, {}
        self.best |= {what: max(value, self.best.get(what, 0.0)) for what, value in numbers.items()}
        found = {
            what: value for what, value in numbers.items() if is_collapsed(what, value, self.best[what], loss)
        }
        self.steps = {what: self.steps.get(what, 0) + 1 for what in found}
        self.since = {what: self.since.get(what, seen.step) for what in found}
        for what, value in found.items():
            if self.steps[what] >= LEAST_STEPS and seen.step - self.since[what] >= LEAST_APART:
                yield self._finding(what, value, loss, seen)

    def _finding(self, what: str, value: float, loss: Mapping[str, Any], seen: ObservedStep) -> Finding:
        since, best = self.since[what], self.best[what]
        if what == _LATENT:
            latent = loss["latent"]
            message = (
                f"The divergence of the latent code from its prior is {value:.2g} nats over "
                f"{latent['dimensions']} dimensions since step {since}: the decoder gets noise"
            )
            title = "The posterior collapses"
            why = f"{latent['active']} of {latent['dimensions']} latent dimensions say something; the "
            why += f"divergence was {best:.2g} at most"
            advice = _WEIGH
        elif what == _EMBEDDING:
            alike = loss["embedding"]["alignment"]
            message = f"The embeddings of all inputs point in one direction since step {since}"
            title = "All embeddings are alike"
            why = f"Mean cosine of two rows {alike:.4f} at step {seen.step}, and {1 - best:.2f} before"
            advice = _NEGATIVES
        else:
            message = (
                f"The embeddings that the loss compares hardly differ between inputs since step {since}: "
                f"their variance is {value:.2g}"
            )
            title = "All embeddings are alike"
            why = f"Variance over the rows {value:.2g} at step {seen.step}, and {best:.2g} before"
            advice = _NEGATIVES
        return self.finding(
            message,
            since=since,
            tensor=Modules.of(seen).output,
            statistic=what,
            value=value,
            limit=NO_CODE if what == _LATENT else None,
            title=title,
            why=(why,),
            advice=(advice,),
        )


def measured(loss: Mapping[str, Any]) -> dict[str, float]:
    """Return how much the codes say: the divergence, the distance of embeddings, the variance of targets."""
    found: dict[str, float] = {}
    if loss.get("latent"):
        found[_LATENT] = float(loss["latent"]["divergence"])
    if loss.get("embedding"):
        found[_EMBEDDING] = 1 - float(loss["embedding"]["alignment"])
    terms = list(loss.get("terms") or ())
    is_policy = "policy" in loss or "actions" in loss  # whose values are equal once its task is solved
    if len(terms) == 1 and not is_policy and terms[0].get("criterion") in _DISTANCES:
        variances = terms[0].get("variances") or ()
        if len(variances) >= LEAST_COLUMNS:
            found[_TARGETS] = float(sum(variances))
    return found


def is_collapsed(what: str, value: float, best: float, loss: Mapping[str, Any]) -> bool:
    """Whether that number says that nothing is left of the code."""
    if what == _LATENT:
        return bool(loss["latent"]["largest"] < NO_CODE)
    if what == _EMBEDDING:
        return value <= 1 - ALIKE and best >= APART * value
    return best > SHRUNK * value
