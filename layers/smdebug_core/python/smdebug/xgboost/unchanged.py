"""Watching an unchanged XGBoost script: each `xgboost.train` is a run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import xgboost
from xgboost import training

from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.xgboost.hook import Hook


def watch(make_hook: Callable[[Any], Any]) -> None:
    """Watch every training in this process from now on."""
    train = training.train

    @functools.wraps(train)
    def watched(params: Any, dtrain: Any, *args: Any, **kwargs: Any) -> Any:
        callbacks = list(kwargs.get("callbacks") or [])
        if any(isinstance(callback, Hook) for callback in callbacks):
            return train(params, dtrain, *args, **kwargs)
        try:
            hook = make_hook(Hook)
        except (SMDebugError, RuntimeError, OSError) as error:
            get_logger().error("The training is not watched: %s", error)
            return train(params, dtrain, *args, **kwargs)
        if hook is None:  # no longer watched
            return train(params, dtrain, *args, **kwargs)
        hook.hyperparameters = dict(params)
        hook.train_data = dtrain
        evals = list(kwargs.get("evals") or ())
        for data, name in evals:
            hook.evaluated[str(name)] = "training" if data is dtrain else "validation"
        others = [data for data, _ in evals if data is not dtrain]
        if evals:
            hook.validation_data = others[-1] if others else dtrain
        with hook:
            return train(params, dtrain, *args, **{**kwargs, "callbacks": [*callbacks, hook]})

    for name in ("xgboost", "xgboost.training", "xgboost.sklearn"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "train", None) is train:
            module.train = watched  # type: ignore[attr-defined]
    assert xgboost.train is watched
