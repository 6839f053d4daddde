"""The default rules in the order in which they are reported, readable without loading one."""

from __future__ import annotations

from collections.abc import Mapping

from smdebug_rules.catalog import RuleEntry

_ENTRIES = (
    ("loss", "LossInput", "A loss that gets the wrong kind of input."),
    (
        "gradients",
        "GradientsNotReset",
        "Gradients of earlier steps that are added to those of later ones.",
    ),
    ("weights", "LostUpdates", "Parameters that have a gradient and do not change."),
    (
        "weights",
        "UnreachedParameters",
        "Layers that are cut off from the loss, left out of the optimizer, or frozen.",
    ),
    ("weights", "Adapters", "Adapters that cannot learn, or whose layers change, too."),
    (
        "layers",
        "ModuleModes",
        "Modules in training mode during evaluation, or the other way round.",
    ),
    ("inputs", "RepeatedInput", "The same rows repeated, within a batch or step after step."),
    ("inputs", "InputScale", "Inputs that are not scaled."),
    ("inputs", "InputPadding", "Token inputs that are nearly all padding."),
    ("inputs", "BatchShape", "Inputs and labels that differ in number."),
    (
        "inputs",
        "LabelBalance",
        "Labels of nearly one class, and a model that learns no more than that.",
    ),
    ("inputs", "TokenLabels", "Labels of tokens that are shifted or masked wrongly."),
    ("inputs", "RevealedTargets", "Inputs that contain the targets."),
    (
        "layers",
        "Attention",
        "Attention that sees the tokens to predict, padding alone, or other rows.",
    ),
    ("weights", "InitialWeights", "Weights that start far too large or small, or all equal."),
    (
        "weights",
        "LearningRate",
        "A learning rate that jumped, vanished, or is out of proportion to the weights.",
    ),
    ("weights", "ShrunkWeights", "Weights that the regularisation shrinks to nearly nothing."),
    ("loss", "AccumulationScale", "Losses of micro-batches that are added up, not averaged."),
    ("layers", "ComputePrecision", "Layers that do not compute in the declared precision."),
    ("loss", "LossScale", "A loss scale of mixed precision that collapses."),
    ("values", "ElementCorruption", "Single values that no computation explains."),
    (
        "values",
        "ComputedTwice",
        "Steps that give other bits when computed again, or whose memory changes.",
    ),
    ("loss", "LossSpike", "A loss or an input that jumps at one step."),
    ("values", "NonFiniteValues", "Values that are not finite, or that grow without bound."),
    ("gradients", "GradientFlow", "Gradients that vanish before they reach the first layers."),
    ("layers", "DeadUnits", "Rectifiers that return zero for nearly every input."),
    ("layers", "SaturatedUnits", "Activations at their bounds for nearly every input."),
    (
        "layers",
        "UnusedExperts",
        "Experts that the router leaves out.",
    ),
    ("layers", "CollapsedRepresentation", "Codes or embeddings that say nothing about the input."),
    ("layers", "ConstantOutput", "A model that gives the same output for every input."),
    ("loss", "StuckLoss", "A loss that does not fall."),
    ("loss", "Generalisation", "A model that overfits or memorises its training data."),
    (
        "policies",
        "PolicyLearning",
        "A policy without advantages, on stale completions, or that collapses.",
    ),
    ("policies", "Preferences", "A policy that learns the opposite of the preferences, or nothing."),
    ("trees", "LeakedLabel", "A feature of an XGBoost training that reveals the label."),
    ("trees", "BoostingProgress", "Boosted trees that do not learn."),
    ("trees", "BoostingBalance", "Boosted trees on labels of nearly one class."),
    (
        "trees",
        "BoostingGeneralisation",
        "Boosted trees that overfit or memorise their training data.",
    ),
    ("ranks", "ReplicasDiffer", "Parameters that should be equal on all ranks but are not."),
    ("ranks", "RanksAlike", "Inputs that should differ between ranks but are equal."),
    ("ranks", "MissingRank", "A rank that misses steps of the others."),
    ("ranks", "SlowRank", "A rank that the others wait for at every step."),
)


def _module(room: str, name: str) -> str:
    letters = [f"_{letter.lower()}" if letter.isupper() else letter for letter in name]
    return f"smdebug_default_rules.{room}." + "".join(letters).lstrip("_")


CATALOG: Mapping[str, RuleEntry] = {
    name: RuleEntry(name, _module(room, name), sentence) for room, name, sentence in _ENTRIES
}
"""Every default rule by its name."""

TAKES_THE_PLACE_OF: Mapping[str, tuple[str, ...]] = {
    "LostUpdates": ("UnchangedTensor",),
    "InputScale": ("CheckInputImages",),
    "InputPadding": ("NLPSequenceRatio",),
    "LabelBalance": ("ClassImbalance",),
    "InitialWeights": ("PoorWeightInitialization",),
    "LearningRate": ("WeightUpdateRatio",),
    "NonFiniteValues": ("ExplodingTensor",),
    "GradientFlow": ("VanishingGradient",),
    "DeadUnits": ("DeadRelu", "AllZero"),
    "SaturatedUnits": ("SaturatedActivation",),
    "ConstantOutput": ("TensorVariance",),
    "StuckLoss": ("LossNotDecreasing",),
    "Generalisation": ("Overfit", "Overtraining"),
}
"""The rules of the old library that a default rule takes the place of, where no rules are named."""
