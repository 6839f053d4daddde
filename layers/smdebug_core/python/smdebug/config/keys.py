"""The default collections, and the special cases among them."""

from __future__ import annotations


class CollectionKeys:
    """Names of the default collections."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    BIASES = "biases"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    LAYERS = "layers"
    METRICS = "metrics"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"
    RELU_INPUT = "relu_input"
    RELU_OUTPUT = "relu_output"
    SIGMOID_INPUT = "sigmoid_input"
    SIGMOID_OUTPUT = "sigmoid_output"
    TANH_INPUT = "tanh_input"
    TANH_OUTPUT = "tanh_output"


# Their one-element tensors are also TensorBoard scalars.
SCALAR_COLLECTIONS = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.SM_METRICS,
    }
)
# Their values are also SageMaker metrics.
SM_METRIC_COLLECTIONS = frozenset({CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS})
SUMMARIES_COLLECTIONS = frozenset({CollectionKeys.TENSORFLOW_SUMMARIES})
# Always saved raw, never as reductions or histograms.
NON_REDUCTION_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
NON_HISTOGRAM_COLLECTIONS = NON_REDUCTION_COLLECTIONS
# They have no values outside training.
TRAINING_ONLY_COLLECTIONS = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})

DEFAULT_PYTORCH_COLLECTIONS = frozenset(
    {
        CollectionKeys.ALL,
        CollectionKeys.DEFAULT,
        CollectionKeys.WEIGHTS,
        CollectionKeys.BIASES,
        CollectionKeys.GRADIENTS,
        CollectionKeys.LOSSES,
    }
)
DEFAULT_MXNET_COLLECTIONS = DEFAULT_PYTORCH_COLLECTIONS
DEFAULT_TF_COLLECTIONS = DEFAULT_PYTORCH_COLLECTIONS | {
    CollectionKeys.INPUTS,
    CollectionKeys.OUTPUTS,
    CollectionKeys.LAYERS,
    CollectionKeys.METRICS,
    CollectionKeys.SM_METRICS,
    CollectionKeys.OPTIMIZER_VARIABLES,
}
DEFAULT_XGBOOST_COLLECTIONS = frozenset(
    {
        CollectionKeys.ALL,
        CollectionKeys.DEFAULT,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.FULL_SHAP,
        CollectionKeys.HYPERPARAMETERS,
        CollectionKeys.LABELS,
        CollectionKeys.PREDICTIONS,
        CollectionKeys.TREES,
    }
)
