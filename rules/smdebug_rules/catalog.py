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
_INACTIVITY = Parameter("threshold_inactivity", "float", 1.0,
    "a unit that is active in a smaller percentage of the samples of a step counts")  # fmt: skip

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
    RuleEntry(
        "PoorWeightInitialization",
        "smdebug_rules.poor_weight_initialization",
        "First steps so bad that little is learnt: uneven layers, flat gradients, or a loss that is stuck.",
        (
            Parameter("activation_inputs_regex", "list", ".*relu_input",
                "patterns: the inputs of activations, whose variances are compared"),
            Parameter("threshold", "float", 10.0, "largest variance over smallest: more than this is found"),
            Parameter("distribution_range", "float", 0.001,
                "less than this between the 5th and the 95th percentile of a gradient is found"),
            Parameter("patience", "int", 5, "a loss without a new minimum for so many saved steps is found"),
            Parameter("steps", "int", 10, "look at the first so many saved steps that have any of this; "
                "saved steps are counted, not those of the training"),
        ),
        collections=("relu_input", "gradients", "losses"),
    ),
    RuleEntry(
        "SaturatedActivation",
        "smdebug_rules.saturated_activation",
        "Layers with tanh or sigmoid that get inputs at which the gradient is next to nothing.",
        (
            _COLLECTION_NAMES,
            Parameter("tensor_regex", "list", ".*tanh_input|.*sigmoid_input",
                "patterns: tensors whose names match any are looked at, too; a name tells the function"),
            Parameter("threshold_tanh_min", "float", -9.4999, "below, tanh is saturated"),
            Parameter("threshold_tanh_max", "float", 9.4999, "above, tanh is saturated"),
            Parameter("threshold_sigmoid_min", "float", -23.0, "below, sigmoid is saturated"),
            Parameter("threshold_sigmoid_max", "float", 16.99999, "above, sigmoid is saturated"),
            _INACTIVITY,
            Parameter("threshold_layer", "float", 50.0,
                "more than this percentage of saturated units is found"),
            Parameter("threshold_tanh", "numbers", None, "both limits of tanh at once"),
            Parameter("threshold_sigmoid", "numbers", None, "both limits of sigmoid at once"),
        ),
    ),
    RuleEntry(
        "DeadRelu",
        "smdebug_rules.dead_relu",
        "ReLU layers most of whose units never react any more.",
        (
            Parameter("tensor_regex", "list", ".*relu_output", "patterns: the outputs of ReLU layers"),
            _INACTIVITY,
            Parameter("threshold_layer", "float", 50.0, "more than this percentage of dead units is found"),
            Parameter("granularity", "str", "unit", "unit: each position of a layer by itself; "
                "channel: all positions of a channel together, for convolutions"),
            Parameter("channel", "int", 1, "the axis of the channels, for granularity channel"),
        ),
        collections=("relu_output",),
    ),
    RuleEntry(
        "TensorVariance",
        "smdebug_rules.tensor_variance",
        "Tensors whose values vary too much, or hardly at all.",
        (
            _COLLECTION_NAMES,
            _TENSOR_REGEX,
            Parameter("max_threshold", "float", None, "a variance above this is found; one is needed"),
            Parameter("min_threshold", "float", None, "a variance below this is found"),
        ),
    ),
    RuleEntry(
        "Overfit",
        "smdebug_rules.overfit",
        "A model that gets better at what it was trained on alone: its validation loss stays behind.",
        (
            Parameter("tensor_regex", "list", None, "patterns: the losses; without, the collection losses"),
            Parameter("start_step", "int", 0, "the first global step that counts"),
            Parameter("patience", "int", 1, "in so many validations in a row"),
            Parameter("ratio_threshold", "float", 0.1,
                "(validation loss - training loss) / training loss: more than this is found"),
        ),
        collections=("losses",),
    ),
    RuleEntry(
        "Overtraining",
        "smdebug_rules.overtraining",
        "A training that goes on although neither the training loss nor the validation loss gets any better.",
        (
            Parameter("patience_train", "int", 5, "TRAIN steps saved since the best training loss"),
            Parameter("patience_validation", "int", 10, "EVAL steps saved since the best validation loss"),
            Parameter("delta", "float", 0.01, "a new best loss must be lower by more than this"),
            Parameter("tensor_regex", "list", None, "patterns: the losses; without, the collection losses"),
            Parameter("combine", "str", "and", "and: both have to be so old; or: one is enough"),
        ),
        collections=("losses",),
    ),
    RuleEntry(
        "StalledTrainingRule",
        "smdebug_rules.stalled_training_rule",
        "A training that has stopped writing, although it has not ended.",
        (
            Parameter("threshold", "int", 1800, "seconds without a step"),
            Parameter("stop_training_on_fire", "bool", False, "stop the SageMaker training job then"),
            Parameter("training_job_name_prefix", "str", None,
                "how the name of that job begins; only if there is one such job, it is stopped"),
            Parameter("before_first_step", "bool", True, "count before the first step, too"),
        ),
        aliases=("StalledTraining",),
    ),
    RuleEntry(
        "ClassImbalance",
        "smdebug_rules.class_imbalance",
        "Classes of which some are seen far more often than others, or that are mostly predicted wrong.",
        (
            Parameter("threshold_imbalance", "float", 10.0,
                "largest class over smallest class seen: more than this is found"),
            Parameter("threshold_misprediction", "float", 0.7,
                "a larger part of a class than this predicted wrong is found"),
            Parameter("samples", "int", 500, "so many labels have to be seen first"),
            Parameter("argmax", "bool", False, "predictions are scores of all classes, along the last axis"),
            Parameter("labels_regex", "list", ".*labels", "patterns: the labels"),
            Parameter("predictions_regex", "list", ".*predictions", "patterns: the predictions"),
            Parameter("reset_samples", "int", None, "begin to count anew after so many labels, "
                "such as those of an epoch; without, all are counted"),
        ),
        collections=("labels", "predictions"),
        aliases=("ClassImbalanceRule",),
    ),
    RuleEntry(
        "Confusion",
        "smdebug_rules.confusion",
        "A classifier that takes one class for another.",
        (
            Parameter("category_no", "int", None, "how many classes there are; without, as many as are seen"),
            Parameter("labels", "str", "labels", "the tensor with the labels"),
            Parameter("predictions", "str", "predictions", "the tensor with the predictions"),
            Parameter("labels_collection", "str", "labels", "where they are if there is no such tensor"),
            Parameter("predictions_collection", "str", "predictions",
                "where they are if there is no such tensor"),
            Parameter("min_diag", "float", 0.9,
                "a smaller part of what is predicted as a class being of that class is found"),
            Parameter("max_off_diag", "float", 0.1,
                "a larger part of what is predicted as a class being of one other class is found"),
        ),
        collections=("labels", "predictions"),
    ),
    RuleEntry(
        "CheckInputImages",
        "smdebug_rules.check_input_images",
        "Images that go into the model without having been normalised.",
        (
            Parameter("threshold_mean", "float", 0.2, "a channel's mean further from 0 than this is found"),
            Parameter("threshold_samples", "int", 500, "so many images have to be seen first"),
            Parameter("regex", "list", ".*hybridsequential0_input_0", "patterns: the model's input"),
            Parameter("channel", "int", 1, "the axis of the channels: 1 for NCHW, 3 for NHWC"),
            Parameter("threshold_variance", "float", None,
                "a channel's variance further from 1 than this is found, too; without, it may be any"),
        ),
        collections=("input_image",),
    ),
    RuleEntry(
        "NLPSequenceRatio",
        "smdebug_rules.nlp_sequence_ratio",
        "Input sequences that consist of padding, or of another token, for too large a part.",
        (
            Parameter("tensor_regex", "list", ".*embedding0_input_0", "patterns: the input of the embedding"),
            Parameter("token_values", "numbers", "0", "the tokens that are counted"),
            Parameter("token_thresholds_percent", "numbers", "50",
                "more than this percentage of a token is found; one for each token, or one for all"),
        ),
        collections=("input_sequence",),
    ),
    RuleEntry(
        "TreeDepth",
        "smdebug_rules.tree_depth",
        "Trees that grow so deep that they learn the training data by heart.",
        (Parameter("depth", "float", 4, "a tree deeper than this is found"),),
        collections=("trees",),
    ),
    RuleEntry(
        "FeatureImportanceOverweight",
        "smdebug_rules.feature_importance_overweight",
        "A few features on which a model of trees relies for nearly everything.",
        (
            Parameter("threshold", "float", 0.8, "a larger part of all importance than this is found"),
            Parameter("nfeatures", "int", 3, "of so many features together; with no more than these, never"),
            Parameter("tensor_regex", "list", ".*feature_importance/weight", "patterns: the importances"),
        ),
        collections=("feature_importance",),
    ),
    RuleEntry(
        "CreateXgboostReport",
        "smdebug_rules.create_xgboost_report",
        "A page that tells how an XGBoost training is going; it finds nothing, and never fires.",
        collections=("metrics", "feature_importance", "hyperparameters", "labels", "predictions"),
    ),
)  # fmt: skip

CATALOG: Mapping[str, RuleEntry] = {entry.name: entry for entry in _ENTRIES}
