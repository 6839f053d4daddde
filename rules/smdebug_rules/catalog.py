"""The built-in rules and their parameters, readable without loading any rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from smdebug.rules import Rule


@dataclass(frozen=True)
class Parameter:
    """A parameter of a rule; text is parsed into its type."""

    name: str
    type: str
    default: Any
    sentence: str
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleEntry:
    """A description of a rule that is not loaded."""

    name: str
    module: str
    sentence: str
    parameters: tuple[Parameter, ...] = ()
    collections: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def load(self) -> type[Rule]:
        """Load the rule; return its class."""
        from importlib import import_module

        return cast("type[Rule]", getattr(import_module(self.module), self.name))


_COLLECTION_NAMES = Parameter("collection_names", "list", None, "collections of tensors to check")
_TENSOR_REGEX = Parameter("tensor_regex", "list", None, "patterns: also check tensors whose names match one")
_RTOL = Parameter("rtol", "float", 1e-5, "relative tolerance of numpy.allclose")
_ATOL = Parameter("atol", "float", 1e-8, "absolute tolerance of numpy.allclose")
_INACTIVITY = Parameter("threshold_inactivity", "float", 1.0,
    "units active in a smaller percentage of a step's samples count")  # fmt: skip

_ENTRIES = (
    RuleEntry(
        "VanishingGradient",
        "smdebug_rules.gradients.vanishing_gradient",
        "Gradients so small that their layers have stopped learning.",
        (
            Parameter("threshold", "float", 1e-7, "limit: lowest mean of |gradient|"),
        ),
        collections=("gradients",),
    ),
    RuleEntry(
        "ExplodingTensor",
        "smdebug_rules.values.exploding_tensor",
        "Values that are not finite: NaN or infinity.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("only_nan", "bool", False, "check for NaN only, not for infinity"),
        ),
    ),
    RuleEntry(
        "SimilarAcrossRuns",
        "smdebug_rules.runs.similar_across_runs",
        "Tensors that differ between two runs at the same step.",
        (
            Parameter("other_trial", "trial", None, "the run to compare with", required=True,
                aliases=("other_trials",)),
            Parameter("include", "list", None, "patterns: compare tensors whose names match one",
                aliases=("include_regex", "tensor_regex")),
            _COLLECTION_NAMES,
            _RTOL,
            _ATOL,
            Parameter("equal_nan", "bool", True, "NaN is equal to NaN"),
            Parameter("strict", "bool", False, "treat a tensor that the other run lacks as a difference"),
        ),
    ),
    RuleEntry(
        "WeightUpdateRatio",
        "smdebug_rules.weights.weight_update_ratio",
        "Weights that change too much, or too little, from step to step.",
        (
            Parameter("large_threshold", "float", 10.0, "limit: highest update/weight ratio"),
            Parameter("small_threshold", "float", 1e-8, "limit: lowest update/weight ratio"),
            Parameter("num_steps", "int", None, "compare with the oldest of the last num_steps steps, "
                "not with the previous saved one"),
            Parameter("epsilon", "float", 1e-9, "added to the mean weight, to avoid division by zero"),
        ),
        collections=("weights",),
    ),
    RuleEntry(
        "AllZero",
        "smdebug_rules.values.all_zero",
        "Tensors in which all values, or a given percentage, are zero.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("threshold", "float", 100.0, "limit: lowest percentage of zeros to find"),
        ),
    ),
    RuleEntry(
        "UnchangedTensor",
        "smdebug_rules.weights.unchanged_tensor",
        "Tensors that do not change over several saved steps.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("num_steps", "int", 3, "number of saved steps, this one included"),
            _RTOL,
            _ATOL,
            Parameter("equal_nan", "bool", False, "NaN is equal to NaN"),
        ),
    ),
    RuleEntry(
        "LossNotDecreasing",
        "smdebug_rules.loss.loss_not_decreasing",
        "A loss that does not decrease, or not fast enough.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("use_losses_collection", "bool", True, "also check the collection losses"),
            Parameter("num_steps", "int", 10, "steps between checks, and between the losses compared"),
            Parameter("min_difference", "float", 0.0, "required decrease of the loss in percent",
                aliases=("diff_percent",)),
            Parameter("increase_threshold_percent", "float", None,
                "tolerated increase of the loss in percent"),
            Parameter("mode", "mode", None,
                "TRAIN, EVAL or GLOBAL; default: each step in its own mode"),
        ),
        collections=("losses",),
    ),
    RuleEntry(
        "PoorWeightInitialization",
        "smdebug_rules.weights.poor_weight_initialization",
        "Poor first steps: uneven layer variances, flat gradients, or a loss that does not decrease.",
        (
            Parameter("activation_inputs_regex", "list", ".*relu_input",
                "patterns: activation inputs, whose variances are compared"),
            Parameter("threshold", "float", 10.0, "limit: highest ratio of largest to smallest variance"),
            Parameter("distribution_range", "float", 0.001,
                "limit: smallest distance of a gradient's 5th and 95th percentiles"),
            Parameter("patience", "int", 5, "limit: saved steps without a new lowest loss"),
            Parameter("steps", "int", 10, "number of first saved steps to check, of those that have data"),
        ),
        collections=("relu_input", "gradients", "losses"),
    ),
    RuleEntry(
        "SaturatedActivation",
        "smdebug_rules.layers.saturated_activation",
        "Layers whose tanh or sigmoid inputs are so large that the gradient is close to zero.",
        (
            _COLLECTION_NAMES,
            Parameter("tensor_regex", "list", ".*tanh_input|.*sigmoid_input",
                "patterns: also check tensors whose names match one; names contain tanh or sigmoid"),
            Parameter("threshold_tanh_min", "float", -9.4999, "tanh is saturated below this"),
            Parameter("threshold_tanh_max", "float", 9.4999, "tanh is saturated above this"),
            Parameter("threshold_sigmoid_min", "float", -23.0, "sigmoid is saturated below this"),
            Parameter("threshold_sigmoid_max", "float", 16.99999, "sigmoid is saturated above this"),
            _INACTIVITY,
            Parameter("threshold_layer", "float", 50.0,
                "limit: highest percentage of saturated units"),
            Parameter("threshold_tanh", "numbers", None, "both limits of tanh together"),
            Parameter("threshold_sigmoid", "numbers", None, "both limits of sigmoid together"),
        ),
        collections=("tanh_input", "sigmoid_input"),
    ),
    RuleEntry(
        "DeadRelu",
        "smdebug_rules.layers.dead_relu",
        "ReLU layers in which most units are dead.",
        (
            Parameter("tensor_regex", "list", ".*relu_output", "patterns: outputs of ReLU layers"),
            _INACTIVITY,
            Parameter("threshold_layer", "float", 50.0, "limit: highest percentage of dead units"),
            Parameter("granularity", "str", "unit", "unit: each position of a layer separately; "
                "channel: all positions of a channel together, for convolutions"),
            Parameter("channel", "int", 1, "axis of the channels, for granularity channel"),
        ),
        collections=("relu_output",),
    ),
    RuleEntry(
        "TensorVariance",
        "smdebug_rules.values.tensor_variance",
        "Tensors whose variance is too large or too small.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("max_threshold", "float", None, "limit: highest variance; one limit is required"),
            Parameter("min_threshold", "float", None, "limit: lowest variance"),
        ),
    ),
    RuleEntry(
        "Overfit",
        "smdebug_rules.loss.overfit",
        "A model that memorises its training data: the validation loss exceeds the training loss.",
        (
            Parameter("tensor_regex", "list", None, "patterns: losses; default: the collection losses"),
            Parameter("start_step", "int", 0, "first global step to check"),
            Parameter("patience", "int", 1, "number of validations in a row"),
            Parameter("ratio_threshold", "float", 0.1,
                "limit: highest (validation loss - training loss) / training loss"),
        ),
        collections=("losses",),
    ),
    RuleEntry(
        "Overtraining",
        "smdebug_rules.loss.overtraining",
        "A training that continues although neither loss improves.",
        (
            Parameter("patience_train", "int", 5, "limit: saved TRAIN steps since the best training loss"),
            Parameter("patience_validation", "int", 10,
                "limit: saved EVAL steps since the best validation loss"),
            Parameter("delta", "float", 0.01, "decrease that counts as an improvement"),
            Parameter("tensor_regex", "list", None, "patterns: losses; default: the collection losses"),
            Parameter("combine", "str", "and", "and: both limits must be reached; or: one is enough"),
        ),
        collections=("losses",),
    ),
    RuleEntry(
        "StalledTrainingRule",
        "smdebug_rules.runs.stalled_training_rule",
        "A training that stopped saving, but has not ended.",
        (
            Parameter("threshold", "int", 1800, "limit: seconds without a step"),
            Parameter("stop_training_on_fire", "bool", False,
                "stop the SageMaker training job when it fires"),
            Parameter("training_job_name_prefix", "str", None,
                "prefix of the job's name, which must match exactly one job"),
            Parameter("before_first_step", "bool", True, "also check before the first step"),
        ),
        aliases=("StalledTraining",),
    ),
    RuleEntry(
        "ClassImbalance",
        "smdebug_rules.labels.class_imbalance",
        "Classes that are far more frequent than others, or mostly mispredicted.",
        (
            Parameter("threshold_imbalance", "float", 10.0,
                "limit: highest ratio of largest to smallest class"),
            Parameter("threshold_misprediction", "float", 0.7,
                "limit: highest mispredicted share of a class"),
            Parameter("samples", "int", 500, "number of labels before the first check"),
            Parameter("argmax", "bool", False, "predictions are scores of all classes, along the last axis"),
            Parameter("labels_regex", "list", ".*labels", "patterns: labels"),
            Parameter("predictions_regex", "list", ".*predictions", "patterns: predictions"),
            Parameter("reset_samples", "int", None, "restart the count after this many labels, "
                "such as those of an epoch; default: count all"),
        ),
        collections=("labels", "predictions"),
        aliases=("ClassImbalanceRule",),
    ),
    RuleEntry(
        "Confusion",
        "smdebug_rules.labels.confusion",
        "A classifier that confuses classes.",
        (
            Parameter("category_no", "int", None, "number of classes; default: those seen"),
            Parameter("labels", "str", "labels", "tensor with the labels"),
            Parameter("predictions", "str", "predictions", "tensor with the predictions"),
            Parameter("labels_collection", "str", "labels", "collection to use if there is no such tensor"),
            Parameter("predictions_collection", "str", "predictions",
                "collection to use if there is no such tensor"),
            Parameter("min_diag", "float", 0.9,
                "limit: lowest share of right predictions of a class"),
            Parameter("max_off_diag", "float", 0.1,
                "limit: highest share of a class's predictions in another class"),
        ),
        collections=("labels", "predictions"),
    ),
    RuleEntry(
        "CheckInputImages",
        "smdebug_rules.inputs.check_input_images",
        "Input images that were not normalised.",
        (
            Parameter("threshold_mean", "float", 0.2, "limit: highest distance of a channel's mean from 0"),
            Parameter("threshold_samples", "int", 500, "number of images before the first check"),
            Parameter("regex", "list", ".*hybridsequential0_input_0", "patterns: input of the model"),
            Parameter("channel", "int", 1, "axis of the channels: 1 for NCHW, 3 for NHWC"),
            Parameter("threshold_variance", "float", None,
                "limit: highest distance of a channel's variance from 1; default: not checked"),
        ),
        collections=("input_image",),
    ),
    RuleEntry(
        "NLPSequenceRatio",
        "smdebug_rules.inputs.nlp_sequence_ratio",
        "Input sequences with too much padding, or too much of another token.",
        (
            Parameter("tensor_regex", "list", ".*embedding0_input_0", "patterns: input of the embedding"),
            Parameter("token_values", "numbers", "0", "tokens to count"),
            Parameter("token_thresholds_percent", "numbers", "50",
                "limit: highest percentage of a token; one for each token, or one for all"),
        ),
        collections=("input_sequence",),
    ),
    RuleEntry(
        "TreeDepth",
        "smdebug_rules.trees.tree_depth",
        "Trees so deep that they memorise the training data.",
        (Parameter("depth", "float", 4, "limit: highest depth of a tree"),),
        collections=("trees",),
    ),
    RuleEntry(
        "FeatureImportanceOverweight",
        "smdebug_rules.trees.feature_importance_overweight",
        "A tree model that relies on only a few features.",
        (
            Parameter("threshold", "float", 0.8, "limit: highest share of all importance"),
            Parameter("nfeatures", "int", 3, "number of features that share the limit"),
            Parameter("tensor_regex", "list", ".*feature_importance/weight", "patterns: importances"),
        ),
        collections=("feature_importance",),
    ),
    RuleEntry(
        "CreateXgboostReport",
        "smdebug_rules.trees.create_xgboost_report",
        "Write a report page on an XGBoost training; this rule never fires.",
        collections=("metrics", "feature_importance", "hyperparameters", "labels", "predictions"),
    ),
)  # fmt: skip

CATALOG: Mapping[str, RuleEntry] = {entry.name: entry for entry in _ENTRIES}
