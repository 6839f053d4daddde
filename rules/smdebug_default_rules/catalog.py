"""The default rules in the order in which they are reported, readable without loading one."""

from __future__ import annotations

from collections.abc import Mapping

from smdebug_rules.catalog import RuleEntry

_ENTRIES = (
    ("LossInput", "A loss that gets values of a kind that it is not made for."),
    ("GradientsNotReset", "Gradients of earlier steps that are added to those of later ones."),
    ("LostUpdates", "Parameters that have a gradient and do not change."),
    (
        "UnreachedParameters",
        "Layers that are cut off from the loss, left out of the optimizer, or frozen.",
    ),
    ("ModuleModes", "Modules in training mode while evaluated, or the other way round."),
    ("RepeatedInput", "The same rows again, within a batch or step after step."),
    ("InputScale", "Inputs of a scale that the model is not made for."),
    ("InputPadding", "Token inputs that are nearly all padding."),
    ("BatchShape", "Inputs and labels that differ in number."),
    ("LabelBalance", "Labels of nearly one class, and a model that learns no more than that."),
    ("InitialWeights", "Weights that start far too large or small, or all alike."),
    (
        "LearningRate",
        "A learning rate that jumped, vanished, or is out of proportion to the weights.",
    ),
    ("ShrunkWeights", "Weights that the regularisation shrinks to nearly nothing."),
    ("AccumulationScale", "Losses of micro-batches that are added up, not averaged."),
    ("ComputePrecision", "Layers that do not compute in the declared precision."),
    ("LossScale", "A loss scale of mixed precision that collapses."),
    ("ElementCorruption", "Single values that no computation explains."),
    ("LossSpike", "A loss or an input that jumps at one step."),
    ("NonFiniteValues", "Values that are not finite, or that grow without bound."),
    ("GradientFlow", "Gradients that vanish before they reach the first layers."),
    ("DeadUnits", "Rectifiers that give zeros for nearly every input."),
    ("SaturatedUnits", "Activations at their bounds for nearly every input."),
    ("ConstantOutput", "A model that gives the same output for every input."),
    ("StuckLoss", "A loss that does not fall."),
    ("Generalisation", "A model that overfits or memorises its training data."),
    ("LeakedLabel", "A feature of an XGBoost training that is the label in other words."),
    ("BoostingProgress", "Boosted trees that do not learn."),
    ("BoostingBalance", "Boosted trees on labels of nearly one class."),
    ("BoostingGeneralisation", "Boosted trees that overfit or memorise their training data."),
    ("ReplicasDiffer", "Parameters that should be equal on all ranks, and are not."),
    ("RanksAlike", "Inputs that should differ between ranks, and are equal."),
    ("MissingRank", "A rank that takes no part in steps at which the others do."),
)


def _module(name: str) -> str:
    letters = [f"_{letter.lower()}" if letter.isupper() else letter for letter in name]
    return "smdebug_default_rules." + "".join(letters).lstrip("_")


CATALOG: Mapping[str, RuleEntry] = {
    name: RuleEntry(name, _module(name), sentence) for name, sentence in _ENTRIES
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
