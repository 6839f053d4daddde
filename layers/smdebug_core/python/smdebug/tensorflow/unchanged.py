"""Watching an unchanged Keras script: the hook is among the callbacks of every `fit`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras

from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.tensorflow.keras import KerasHook

_restarts: list[Callable[[], None]] = []


def stop() -> None:
    """Watch nothing until `restart`."""
    restart()  # and `make_hook` makes none


def restart() -> None:
    """Treat what is trained from now on as another training, with its own hook."""
    for forget in _restarts:
        forget()


def watch(make_hook: Callable[[Any], Any]) -> None:
    """Watch every training in this process from now on."""
    made: Any = keras.callbacks.CallbackList.__init__
    hooks: list[KerasHook | None] = []
    _restarts.append(hooks.clear)

    @functools.wraps(made)
    def with_hook(container: Any, callbacks: Any = None, *args: Any, **kwargs: Any) -> None:
        given = keras.tree.flatten(callbacks) if callbacks else []
        if not any(isinstance(callback, KerasHook) for callback in given):
            if not hooks:
                try:
                    hook = make_hook(KerasHook)
                    if hook is not None:
                        hook.number_training_steps()
                    hooks.append(hook)
                except (SMDebugError, RuntimeError, OSError) as error:
                    get_logger().error("The training is not watched: %s", error)
                    hooks.append(None)
            if hooks[0] is not None:
                given = [*given, hooks[0]]
        made(container, given, *args, **kwargs)

    keras.callbacks.CallbackList.__init__ = with_hook
