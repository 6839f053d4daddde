"""Which scalars of a run are losses, and which of them is that of the training, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from smdebug.files.names import LEARNING_RATES, SYSTEM

_USUAL_NAMES = ("loss", "train_loss", "training_loss")
_NO_LOSSES = (LEARNING_RATES, f"{SYSTEM}/", "gradient", "update/")
_FALLING = re.compile(r"(^|[/_.@-])(error|m?error|rmsle|rmse|mse|mae|mape|mphe|nll)([/_.@-]|$)")
"""Metrics that fall as a model improves, such as boosted trees report instead of a loss."""


def likely_losses(names: Iterable[str], certain: Iterable[str] = ()) -> list[str]:
    """Return those of the names that are losses, the most likely loss of the training first.

    `certain` are losses whatever their names.
    """
    known = frozenset(certain)
    candidates = [name for name in dict.fromkeys(names) if not name.startswith(_NO_LOSSES)]
    losses = [name for name in candidates if name in known or "loss" in name.lower()]
    losses = losses or [name for name in candidates if _FALLING.search(name.lower())]
    return sorted(losses, key=_rank)


def _rank(name: str) -> tuple[int, str]:
    """The usual names come first, and losses of an evaluation last."""
    lower = name.lower()
    if lower in _USUAL_NAMES:
        return _USUAL_NAMES.index(lower), name
    if "train" in lower:
        return len(_USUAL_NAMES), name
    of_evaluation = re.search(r"(^|[/_.-])(val|valid|validation|eval|test)", lower)
    return len(_USUAL_NAMES) + (2 if of_evaluation else 1), name
