"""Why a fault is not named right in every run, for docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping

_NO_STATISTICS_OF_JAX = (
    "Recorded before the hook of JAX followed the default plan: no rule is checked."
)
_TREES = "No default rule judges the metrics, importance and trees of XGBoost yet."
_LAYER_WITH_ACTIVATION = (
    "Rules for activations look for layers that are one, such as ReLU; here it is part of Dense."
)
_SIZE_OF_STEPS = "The values are so large that other rules see their effects first, and name those."

REASONS: Mapping[str, str] = {
    "bit of a weight flips": (
        "A weight of 0.1 becomes 0 between two steps, no more than updates do. No saved number shows it."
    ),
    "jax bit of a weight flips": _NO_STATISTICS_OF_JAX,
    "jax layer whose update is dropped": _NO_STATISTICS_OF_JAX,
    "jax rate far too large": _NO_STATISTICS_OF_JAX,
    "optimizer of a copy": (
        "No model that is called has parameters of an optimizer, so that the training is not saved at all."
    ),
    "losses of micro batches added up": (
        "The rule asks for two saved steps of the optimizer. With eight passes a step, only one of the "
        "saved passes, the eighth, is one."
    ),
    "rank that ends early": (
        "The rule waits for a later step that several ranks saved. Of two ranks, one that is left saves none."
    ),
    "rank that runs out of data": (
        "The rule waits for a later step that several ranks saved. Of two ranks, one that is left saves none."
    ),
    "residual branches that start unscaled": (
        "Values that explode at step 0 are named as exploding, not as badly initialised."
    ),
    "train forgotten after validation": (
        "Steps in evaluation mode are saved once for each change of the mode, and it never changes again."
    ),
    "label among the features": _TREES,
    "deep trees on noise": _TREES,
    "trees on shuffled labels": _TREES,
    "trees on one class": _TREES,
    "trees with a vanishing rate": _TREES,
    "keras dead rectifiers": _LAYER_WITH_ACTIVATION,
    "keras rate a thousand times too large": _LAYER_WITH_ACTIVATION,
    "rate a hundred times too large": _SIZE_OF_STEPS,
    "language model with a rate too large": _SIZE_OF_STEPS,
    "gradients cleared before the step": (
        "An optimizer whose parameters have no gradient at any step is not judged yet."
    ),
    "updates that bfloat16 rounds away": (
        "The weights were moved away from zero, so that outputs grow at step 0, which is named first."
    ),
    "huber loss of all pairs": (
        "Criteria expand their inputs before they compare them, and the expansion is not read yet."
    ),
    "warm up that stays at zero": "A rate that is 0 from the first step on is taken for a warm-up.",
    "weights of another seed on each rank": (
        "Models that differ from the first step on are trained on purpose as well, such as shards, experts "
        "and sweeps of seeds. No saved number tells them apart."
    ),
}
