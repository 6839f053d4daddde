"""A run that the tests of trials and tensors share."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.progress import StepState
from tests.trials.writing import (
    begin,
    write_step,
)

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


@pytest.fixture
def storage() -> MemoryStorage:
    """Two training steps, one of evaluation, one without a mode, by two workers; going on."""
    storage = MemoryStorage()
    collections = {"losses": {"include_regex": ["loss"]}, "picked": {"tensor_names": ["w", "zz"]}}
    begin(storage, 2, collections)
    for worker in (0, 1):
        w = np.array([[3.0, -4.0]]) + worker
        for step, mode, mode_step in ((0, TRAIN, 0), (3, TRAIN, 3), (4, EVAL, 0), (6, GLOBAL, 6)):
            tensors = {"w": w, "loss": float(step), "smdebug/reductions/abs_max/w": 4.0}
            if mode is EVAL:
                tensors = {
                    "loss": float(step),
                    "labels": [1.0],
                    "labels_10": [2.0],
                    "labels_2": [3.0],
                }
            write_step(storage, step, tensors, worker=worker, mode=mode, mode_step=mode_step)
    return storage
