"""Which of a run's series is the loss of the training, and its values."""

from __future__ import annotations

from collections.abc import Sequence

from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial

_LOSS_NAMES = ("loss", "train_loss", "training_loss")


def most_likely_loss(names: Sequence[str]) -> str:
    """Return the name that is most likely the loss of the training; empty without names."""
    for wanted in _LOSS_NAMES:
        for name in names:
            if name.lower() == wanted:
                return name
    return next((name for name in names if "loss" in name.lower()), names[0] if names else "")


def kept_losses(trial: Trial) -> tuple[str, list[float]] | None:
    """Return the name and values of the training loss, where the run keeps it at every step."""
    if not trial.observations.exist:
        return None
    name = most_likely_loss(trial.observations.series_names())
    if not name:
        return None
    series = trial.series(name)
    training = series.of(ModeKeys.TRAIN)
    return name, [float(value) for value in (training if len(training) else series).values]
