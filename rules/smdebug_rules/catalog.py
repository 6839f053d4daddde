"""Every built-in rule in one line, and its parameters: what can be asked without loading any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from smdebug.rules import Rule


@dataclass(frozen=True)
class Parameter:
    """One parameter of a rule; as text, it is parsed into its type."""

    name: str
    type: str
    default: Any
    sentence: str
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleEntry:
    """What there is to know of a rule before it is loaded."""

    name: str
    module: str
    sentence: str
    parameters: tuple[Parameter, ...] = ()
    collections: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def load(self) -> type[Rule]:
        """The class of the rule."""
        from importlib import import_module

        return cast("type[Rule]", getattr(import_module(self.module), self.name))


_COLLECTION_NAMES = Parameter(
    "collection_names", "list", None, "collections whose tensors are looked at"
)
_TENSOR_REGEX = Parameter(
    "tensor_regex", "list", None, "patterns: tensors whose names match any are looked at, too"
)
_RTOL = Parameter("rtol", "float", 1e-5, "the relative tolerance of numpy.allclose")
_ATOL = Parameter("atol", "float", 1e-8, "the absolute tolerance of numpy.allclose")

_ENTRIES = (
    RuleEntry(
        "VanishingGradient",
        "smdebug_rules.vanishing_gradient",
        "Gradients so small that the layers they belong to have stopped learning.",
        (
            Parameter("threshold", "float", 1e-7, "a mean of |gradient| below this is found"),
        ),
        collections=("gradients",),
    ),
    RuleEntry(
        "ExplodingTensor",
        "smdebug_rules.exploding_tensor",
        "Values that are no longer finite: NaN or infinity.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("only_nan", "bool", False, "look for NaN alone, not for infinity"),
        ),
    ),
    RuleEntry(
        "SimilarAcrossRuns",
        "smdebug_rules.similar_across_runs",
        "Tensors that differ between two runs at the same step.",
        (
            Parameter("other_trial", "trial", None, "the run to compare with", required=True,
                aliases=("other_trials",)),
            Parameter("include", "list", None, "patterns: tensors whose names match any are compared",
                aliases=("include_regex", "tensor_regex")),
            _COLLECTION_NAMES,
            _RTOL,
            _ATOL,
            Parameter("equal_nan", "bool", True, "NaN is equal to NaN"),
            Parameter("strict", "bool", False, "a tensor that the other run lacks is a difference"),
        ),
    ),
    RuleEntry(
        "WeightUpdateRatio",
        "smdebug_rules.weight_update_ratio",
        "Weights that change by far too much, or hardly at all, from step to step.",
        (
            Parameter("large_threshold", "float", 10.0, "a ratio of update to weight above this is found"),
            Parameter("small_threshold", "float", 1e-8, "a ratio of update to weight below this is found"),
            Parameter("num_steps", "int", None, "compare with the oldest of so many steps before, "
                "not with the last saved one"),
            Parameter("epsilon", "float", 1e-9, "added to the weights, so that none is divided by zero"),
        ),
        collections=("weights",),
    ),
    RuleEntry(
        "AllZero",
        "smdebug_rules.all_zero",
        "Tensors of which all values, or a given percentage, are zero.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("threshold", "float", 100.0, "the percentage of zeros from which on it is found"),
        ),
    ),
    RuleEntry(
        "UnchangedTensor",
        "smdebug_rules.unchanged_tensor",
        "Tensors that stay the same over several saved steps.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("num_steps", "int", 3, "over how many saved steps, this one included"),
            _RTOL,
            _ATOL,
            Parameter("equal_nan", "bool", False, "NaN is equal to NaN"),
        ),
    ),
    RuleEntry(
        "LossNotDecreasing",
        "smdebug_rules.loss_not_decreasing",
        "A loss that does not fall, or not fast enough.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("use_losses_collection", "bool", True, "look at the collection losses, too"),
            Parameter("num_steps", "int", 10, "compare every so many steps, over at least so many"),
            Parameter("min_difference", "float", 0.0, "the percentage by which the loss has to fall",
                aliases=("diff_percent",)),
            Parameter("increase_threshold_percent", "float", None,
                "the percentage by which the loss may rise without being found"),
            Parameter("mode", "mode", None, "TRAIN, EVAL or GLOBAL; else the first of EVAL, TRAIN, GLOBAL "
                "in which there is a loss"),
        ),
        collections=("losses",),
    ),
)  # fmt: skip

CATALOG: Mapping[str, RuleEntry] = {entry.name: entry for entry in _ENTRIES}
