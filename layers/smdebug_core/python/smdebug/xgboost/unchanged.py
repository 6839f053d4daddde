"""Watching an unchanged XGBoost script: each `xgboost.train` and `xgboost.cv` is a run.

What is logged after a training belongs to it: its run ends when the next one begins, or with the process.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import xgboost
from xgboost import training

from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.xgboost.hook import Hook

MakeHook = Callable[[Any], Any]
_FOLDS = {"train": "training", "test": "validation"}  # the names under which cv reports its folds
_trained: list[Hook] = []
"""The hook of the training that ended last, whose run is open for what is logged of it."""


def watch(make_hook: MakeHook) -> None:
    """Watch every training and cross-validation in this process from now on."""
    for name in ("train", "cv"):
        function = getattr(training, name)
        replaced = _watched(function, make_hook, folds=name == "cv")
        for module_name in ("xgboost", "xgboost.training", "xgboost.sklearn"):
            module = sys.modules.get(module_name)
            if module is not None and getattr(module, name, None) is function:
                setattr(module, name, replaced)
        assert getattr(xgboost, name) is replaced


def _watched(train: Callable[..., Any], make_hook: MakeHook, *, folds: bool) -> Callable[..., Any]:
    """Return `xgboost.train` or `xgboost.cv` with a hook among its callbacks."""

    @functools.wraps(train)
    def watched(params: Any, dtrain: Any, *args: Any, **kwargs: Any) -> Any:
        callbacks = list(kwargs.get("callbacks") or [])
        if any(isinstance(callback, Hook) for callback in callbacks):
            return train(params, dtrain, *args, **kwargs)
        _end_runs_of(_trained)
        try:
            hook = make_hook(Hook)
        except (SMDebugError, RuntimeError, OSError) as error:
            get_logger().error("The training is not watched: %s", error)
            return train(params, dtrain, *args, **kwargs)
        if hook is None:  # no longer watched
            return train(params, dtrain, *args, **kwargs)
        hook.hyperparameters = dict(params)
        hook.train_data = dtrain
        if folds:
            hook.evaluated.update(_FOLDS)
        else:
            _note_data(hook, dtrain, list(kwargs.get("evals") or ()))
        with ExitStack() as stack:
            stack.enter_context(hook)
            trained = train(params, dtrain, *args, **{**kwargs, "callbacks": [*callbacks, hook]})
            stack.pop_all()
        _end_runs_of(_trained)  # of trainings within this one
        _trained.append(hook)
        return trained

    return watched


def _end_runs_of(hooks: list[Hook]) -> None:
    while hooks:
        hooks.pop().close()


def _note_data(hook: Hook, dtrain: Any, evals: list[tuple[Any, Any]]) -> None:
    """Note which data of `evals` is of training or validation."""
    for data, name in evals:
        hook.evaluated[str(name)] = "training" if data is dtrain else "validation"
    others = [data for data, _ in evals if data is not dtrain]
    if evals:
        hook.validation_data = others[-1] if others else dtrain
