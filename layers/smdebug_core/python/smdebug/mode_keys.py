"""The modes in which a run can take a step."""

from __future__ import annotations

from enum import Enum


class ModeKeys(Enum):
    """Training, evaluation, prediction, or no mode in particular (GLOBAL)."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4

    # Enum's own hash is a Python function, which takes longer than a look-up. Members exist once.
    __hash__ = object.__hash__


ALLOWED_MODES = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.GLOBAL]
TRAINING = (ModeKeys.TRAIN, ModeKeys.GLOBAL)  # a loop that sets no mode trains too
ALLOWED_MODE_NAMES = [mode.name for mode in ALLOWED_MODES]


def str_to_mode_keys(name: str) -> ModeKeys:
    """The mode of that name, in any case: `str_to_mode_keys("train") is ModeKeys.TRAIN`."""
    return ModeKeys[name.strip().upper()]
