"""The best value of a scalar: the lowest of a loss, the highest of an accuracy."""

from __future__ import annotations

import re

_LOW = frozenset(
    [
        "loss",
        "losses",
        "error",
        "errors",
        "perplexity",
        "ppl",
        "rmse",
        "mse",
        "mae",
        "mape",
        "wer",
        "cer",
        "fid",
        "nll",
        "bpb",
        "bpc",
        "eer",
        "divergence",
    ]
)
_HIGH = frozenset(
    [
        "accuracy",
        "acc",
        "top1",
        "top5",
        "precision",
        "recall",
        "f1",
        "auc",
        "auroc",
        "auprc",
        "map",
        "iou",
        "miou",
        "dice",
        "psnr",
        "ssim",
        "r2",
        "bleu",
        "rouge",
        "score",
        "mrr",
        "ndcg",
        "reward",
        "rewards",
        "return",
        "returns",
    ]
)
_WORD = re.compile(r"[a-z]+\d*")


def is_highest_best(name: str) -> bool | None:
    """Return whether the highest value of that name is the best one; None if its name does not tell."""
    words = set(_WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    if words & _LOW or any(word.endswith("loss") for word in words):
        return False
    return True if words & _HIGH else None
