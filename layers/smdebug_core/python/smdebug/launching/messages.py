"""What is said about the trainings of a process."""

from __future__ import annotations

import sys
from typing import Any


def framework_of(hook_class: Any) -> str:
    """Return the name of the framework that a hook is for."""
    names = {"pytorch": "PyTorch", "tensorflow": "Keras", "xgboost": "XGBoost"}
    return names.get(hook_class.__module__.split(".")[1], "this process")


def no_training_in(where: str) -> str:
    """Return the message for a process in which nothing was trained."""
    return (
        f"no training of PyTorch, Keras or XGBoost was seen in {where}, and nothing was saved. A training "
        "in another process is watched if that process is started with smdebug run. A step that is "
        "compiled as a whole cannot be watched: compile the model instead. For any other loop use "
        "smdebug.Hook (docs/saving.md)"
    )


def is_left_to_callback() -> bool:
    """Return whether a training was left to the callback that a person gave to its Trainer."""
    watcher = sys.modules.get("smdebug.pytorch.unchanged")
    return watcher is not None and watcher.passes_over_trainings()
