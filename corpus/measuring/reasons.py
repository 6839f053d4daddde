"""Why a fault is not named right in every run, for docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "bit of a weight flips": (
        "A weight of 0.1 becomes 0 between two steps, no more than updates do. No saved number shows it."
    ),
    "exponent of a weight flips": (
        "The weight stands out at the next saved step as soon as it does so by more than 20 times its past; "
        "in one run the past had a large value already."
    ),
    "weights of another seed on each rank": (
        "Models that differ from the first step on are trained on purpose as well, such as shards, experts "
        "and sweeps of seeds. No saved number tells them apart."
    ),
    "thirty rows for a wide network": (
        "In one run the validation loss rises by less than 15 % of its best before the training ends."
    ),
    "deep trees on noise": (
        "Two of three runs never validate better than at first, which is named as memorising."
    ),
    "trees on one class": "In one run the few labels of the other class are told apart well enough.",
    "lengths of texts from short to long": (
        "Some of the sorted batches have fewer than four different lengths, which chance may sort."
    ),
    "dropout that a search has left high": (
        "In one run the loss is named as that of chance, without the layer; in the others it falls a little, "
        "and nothing is said."
    ),
    "a third of the groups rotated": (
        "Two thirds of the labels are right, and the loss falls as it does with noisy labels."
    ),
    "few quantities shifted and memorised": (
        "It ends after 250 steps: a loss is compared with that of a constant prediction from 300 on."
    ),
    "jax bit of a weight flips": (
        "The next saved step shows it only if the weight stands out by more than 20 times its past."
    ),
    "images fine tuned in bfloat16 with momentum": (
        "By its gradients the larger of two weights would have moved by twice the distance between two "
        "numbers of bfloat16, and the other by a third of it: a single weight is not judged."
    ),
    "convolutions in half precision": (
        "A quarter of the values of its last layer move at the first steps, where gradients are larger; then "
        "none does, as at the end of a healthy training."
    ),
    "velocity of a single time in a column": (
        "The time is a column of the rows, and a column that is constant may be so on purpose."
    ),
}
