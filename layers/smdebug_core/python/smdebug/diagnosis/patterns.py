"""Which cause explains which other findings, and why.

A pattern holds if the cause was visible no later than the symptom, and at a place that can lead to it. The
table has no cycles: of two problems with the same onset, at most one explains the other.

A trend (TRENDS) is found over a stretch of steps, which may begin before its cause: the cause explains it if
it was there for at least half of the stretch. A moment (MOMENTS) is found in the loss of every step, and most
of its causes only at the next saved one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple


class Reach(Enum):
    """Where a symptom can be, seen from its cause."""

    ANYWHERE = "anywhere in the run"
    HERE = "in the same layer"
    LATER = "in the same layer or a later one"
    EARLIER = "in the same layer or an earlier one"


class Pattern(NamedTuple):
    """One cause that explains one symptom."""

    cause: str
    symptom: str
    reach: Reach
    because: str


TRENDS = frozenset({"not learning"})
MOMENTS = frozenset({"spike"})

_A, _H, _L, _E = Reach.ANYWHERE, Reach.HERE, Reach.LATER, Reach.EARLIER

_TABLE: Mapping[str, Mapping[tuple[str, ...], tuple[Reach, str]]] = {
    "learning rate": {
        ("spike", "exploding"): (
            _A,
            "updates that are too large throw the weights out of their range",
        ),
        ("dead activation", "saturated activation"): (
            _A,
            "updates that are too large push activations to where their slope is zero",
        ),
        ("lost update",): (_A, "an update that is too small is rounded away"),
        ("not learning", "constant output", "vanishing gradient", "scaler"): (
            _A,
            "with such steps the optimizer cannot follow the gradient",
        ),
    },
    "clipping": {
        ("not learning", "constant output", "lost update", "vanishing gradient", "learning rate"): (
            _A,
            "with gradients this small the weights hardly change",
        ),
    },
    "evaluation input": {
        ("memorising", "overfitting"): (
            _A,
            "the model is validated on inputs unlike those that it learns from",
        ),
    },
    "unscaled input": {
        ("saturated activation", "dead activation"): (
            _A,
            "large inputs push activations to where their slope is zero",
        ),
        ("exploding", "spike", "scaler"): (_A, "gradients grow with the inputs"),
        ("vanishing gradient", "not learning", "constant output", "bad initialisation"): (
            _A,
            "the model is not made for inputs of this scale",
        ),
        ("learning rate",): (_A, "gradients, and with them the updates, grow with the inputs"),
    },
    "padding": {
        ("repeated input", "constant output", "dead activation", "not learning", "imbalance"): (
            _A,
            "rows that are nearly all padding are nearly equal",
        ),
    },
    "batch shape": {
        ("loss input", "constant output", "not learning"): (
            _A,
            "every output is compared with the labels of other rows",
        ),
    },
    "loss input": {
        ("vanishing gradient", "not learning", "constant output", "no gradient"): (
            _A,
            "the loss computed from such values has nearly no gradient, or a wrong one",
        ),
        ("exploding", "spike", "memorising", "learning rate"): (
            _A,
            "the loss is not computed from what it expects",
        ),
    },
    "repeated input": {
        ("memorising", "overfitting", "imbalance", "not learning"): (
            _A,
            "the training sees few different rows",
        ),
        ("no gradient", "constant output", "dead activation", "vanishing gradient"): (
            _A,
            "equal rows give equal outputs, and zeros give no gradient",
        ),
    },
    "imbalance": {
        ("constant output", "not learning", "memorising"): (
            _A,
            "always answering the frequent class is nearly optimal",
        ),
    },
    "leaked label": {
        ("memorising", "overfitting"): (_A, "the model learns the feature that reveals the label"),
    },
    "adapter": {
        ("lost update", "no gradient", "not learning", "learning rate", "vanishing gradient"): (
            _A,
            "what should learn cannot, or something else learns in its place",
        ),
    },
    "token labels": {
        (
            "not learning",
            "imbalance",
            "constant output",
            "memorising",
            "overfitting",
            "exploding",
            "no gradient",
            "vanishing gradient",
        ): (
            _A,
            "the loss compares tokens that the model should not predict",
        ),
    },
    "attention": {
        ("not learning", "constant output", "memorising", "overfitting", "vanishing gradient"): (
            _A,
            "what the model computes from does not belong to what it should predict",
        ),
    },
    "unused experts": {
        ("not learning", "lost update", "no gradient", "constant output"): (
            _A,
            "experts without tokens learn nothing",
        ),
    },
    "collapsed representation": {
        ("not learning", "constant output", "vanishing gradient", "memorising"): (
            _A,
            "what follows cannot tell the inputs apart",
        ),
    },
    "no advantage": {
        ("no gradient", "vanishing gradient", "lost update", "not learning", "learning rate"): (
            _A,
            "where no completion is better than the others, the gradient is zero",
        ),
    },
    "stale rollouts": {
        ("policy collapse", "policy drift", "not learning", "spike", "exploding"): (
            _A,
            "gains of another policy are not gains of this one",
        ),
    },
    "policy collapse": {
        ("no advantage", "vanishing gradient", "no gradient", "not learning", "constant output"): (
            _A,
            "completions that are all equal have equal rewards",
        ),
    },
    "policy drift": {
        ("exploding", "spike", "not learning"): (_A, "ratios of distant policies are of any size"),
    },
    "preferences": {
        ("vanishing gradient", "no gradient", "lost update", "not learning"): (
            _A,
            "a policy that is compared with itself has nothing to prefer",
        ),
    },
    "mode mismatch": {
        ("overfitting", "memorising", "spike"): (
            _A,
            "losses of the two modes are computed by different models",
        ),
        ("not learning", "corruption", "replicas differ"): (
            _A,
            "running statistics change where they should not, or not where they should",
        ),
    },
    "precision": {
        ("lost update", "vanishing gradient", "no gradient"): (
            _A,
            "values below the precision of the type become zero",
        ),
        ("exploding", "spike", "scaler", "not learning"): (
            _A,
            "values above the range of the type become infinite",
        ),
    },
    "missing rank": {
        ("replicas differ", "lost update", "not learning"): (
            _A,
            "its gradients are not averaged in",
        ),
    },
    "corruption": {
        ("exploding", "spike", "replicas differ", "not learning", "scaler"): (
            _A,
            "the changed values enter every later step",
        ),
        ("vanishing gradient", "dead activation", "saturated activation"): (
            _A,
            "the changed values dominate the layers that they pass through",
        ),
    },
    "gradients not reset": {
        ("dead activation", "saturated activation"): (
            _A,
            "steps along added-up gradients push activations to where their slope is zero",
        ),
        (
            "exploding",
            "spike",
            "not learning",
            "accumulation scale",
            "scaler",
            "learning rate",
        ): (
            _A,
            "the gradient grows with every step that is added to it",
        ),
    },
    "accumulation scale": {
        ("exploding", "spike", "not learning", "scaler", "learning rate"): (
            _A,
            "the gradient is larger by the number of micro-batches",
        ),
    },
    "ranks alike": {
        ("repeated input", "overfitting", "memorising"): (
            _A,
            "all ranks train on the same rows",
        ),
    },
    "bad initialisation": {
        ("exploding", "spike", "scaler", "learning rate"): (
            _A,
            "large weights multiply from layer to layer",
        ),
        ("saturated activation", "dead activation"): (
            _L,
            "activations begin where their slope is zero",
        ),
        ("vanishing gradient", "no gradient"): (_A, "gradients are multiplied by these weights"),
        ("not learning", "constant output", "lost update"): (
            _A,
            "the model begins at a point from which it cannot learn",
        ),
    },
    "replicas differ": {
        ("spike", "not learning", "exploding"): (_A, "gradients of different models are averaged"),
    },
    "exploding": {
        ("spike", "scaler", "not learning", "constant output"): (
            _A,
            "values that are not finite, or far too large, enter the loss",
        ),
        (
            "dead activation",
            "saturated activation",
            "no gradient",
            "vanishing gradient",
            "lost update",
        ): (
            _A,
            "layers beyond their range pass no gradient",
        ),
    },
    "dead activation": {
        ("no gradient", "vanishing gradient", "lost update"): (
            _E,
            "an activation that is zero passes no gradient to the layers before it",
        ),
        ("not learning", "constant output"): (_A, "the output hardly depends on the input"),
    },
    "saturated activation": {
        ("vanishing gradient", "no gradient", "lost update"): (
            _E,
            "a saturated activation passes nearly no gradient to the layers before it",
        ),
        ("not learning", "constant output"): (_A, "the output hardly depends on the input"),
    },
    "vanishing gradient": {
        ("lost update",): (_H, "an update this small is rounded away"),
        ("no gradient",): (_E, "what arrives there is too small to be represented"),
        ("not learning", "constant output"): (_A, "layers without a gradient do not learn"),
    },
    "no gradient": {
        ("lost update",): (_H, "a parameter without a gradient is not updated"),
        ("not learning", "constant output", "memorising"): (
            _A,
            "a part of the model does not learn",
        ),
    },
    "scaler": {
        ("lost update", "not learning"): (
            _A,
            "updates are skipped while the loss scale is reduced",
        ),
    },
    "lost update": {
        ("not learning", "constant output"): (
            _A,
            "parameters that do not change do not learn",
        ),
    },
    "spike": {
        ("not learning",): (_A, "the loss has not recovered since it jumped"),
    },
    "memorising": {
        ("overfitting",): (_A, "validation cannot follow what was memorised"),
    },
    "weight decay": {
        ("constant output", "not learning", "vanishing gradient", "dead activation"): (
            _A,
            "weights that are nearly zero pass neither values nor gradients",
        ),
        ("lost update", "saturated activation", "no gradient"): (
            _A,
            "weights that are nearly zero pass neither values nor gradients",
        ),
    },
    "constant output": {
        ("not learning",): (_A, "the same output for every input cannot reduce the loss"),
    },
}


def _patterns() -> Iterator[Pattern]:
    for cause, symptoms in _TABLE.items():
        for names, (reach, because) in symptoms.items():
            for symptom in names:
                yield Pattern(cause, symptom, reach, because)


PATTERNS = tuple(_patterns())
BY_PAIR: Mapping[tuple[str, str], Pattern] = {
    (pattern.cause, pattern.symptom): pattern for pattern in PATTERNS
}
