"""Parameters with which every rule fires occasionally on small runs of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from smdebug_rules.catalog import CATALOG

NUMBERS = st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0, 1e-9, 100.0, float("nan"), float("inf")])
NAMES = ["loss", "val_loss", "gradient/a", "weight", "a_relu_output", "a_tanh_input", "labels"]
TENSORS = st.dictionaries(
    st.sampled_from([*NAMES, "predictions", "feature_importance/weight/f0", "trees/Node"]),
    NUMBERS,
    min_size=1,
)
COLLECTIONS = {"metrics": ["loss"], "trees": ["^trees/"]}

PARAMETERS: dict[str, dict[str, Any]] = {
    "AllZero": {"tensor_regex": ".*", "threshold": "50"},
    "UnchangedTensor": {"tensor_regex": ".*", "num_steps": "2"},
    "LossNotDecreasing": {"num_steps": "3"},
    "WeightUpdateRatio": {"num_steps": "4"},
    "PoorWeightInitialization": {"activation_inputs_regex": "relu|weight", "patience": "1"},
    "TensorVariance": {"tensor_regex": ".*", "min_threshold": "0.5"},
    "Overfit": {"patience": "2"},
    "Overtraining": {"patience_train": "1", "patience_validation": "1", "combine": "or"},
    "ClassImbalance": {"samples": "2", "threshold_imbalance": "1", "reset_samples": "4"},
    "CheckInputImages": {"regex": "weight", "threshold_samples": "3", "channel": "-1"},
    "NLPSequenceRatio": {"tensor_regex": "loss", "token_values": "0,5"},
    "FeatureImportanceOverweight": {"tensor_regex": ".*", "nfeatures": "1", "threshold": "0.5"},
    "TreeDepth": {"depth": "1"},
    "StalledTrainingRule": {"threshold": "1"},
}


def value(name: str, number: float) -> Any:
    """What is saved under that name: images have channels, layers have units, losses are scalars."""
    if name in ("weight", "a_relu_output", "a_tanh_input"):
        return np.full((3, 2), number, np.float32)
    return np.float32(number)


def made(name: str, trial: Any, other: Any) -> Any:
    """The rule of that name over the trial, and another one if it compares."""
    extra = {"other_trial": other} if name == "SimilarAcrossRuns" else PARAMETERS.get(name, {})
    return CATALOG[name].load()(trial, **extra)
