"""Errors in hooks that were not configured do not reach the training.

Framework hooks may exist without the user's knowledge (SageMaker adds them). While such a hook has its
default configuration, an error in it is logged once and switches the library off for the rest of the process.
Errors in a configured hook are raised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from smdebug.exceptions import TrainingStopped
from smdebug.logger import get_logger

BASE_ERROR_MESSAGE = (
    "SMDebug error has occurred, disabling SMDebug for the rest of the training job. Stack trace:"
)

P = ParamSpec("P")
R = TypeVar("R")


class _Agent:
    """The hook, and whether the library is switched off."""

    def __init__(self) -> None:
        self.disable_smdebug = False
        self.hook: Any = None
        self.logger = get_logger()

    def set_hook(self, hook: Any) -> None:
        self.hook = hook

    def catch_smdebug_errors(
        self, default_return_val: Any = None
    ) -> Callable[[Callable[P, R]], Callable[P, Any]]:
        """Wrap a callback: once the library is switched off it returns `default_return_val` at once.

        A callable default is called with the callback's arguments.
        """

        def wrap(function: Callable[P, R]) -> Callable[P, Any]:
            def default(*args: P.args, **kwargs: P.kwargs) -> Any:
                if callable(default_return_val):
                    return default_return_val(*args, **kwargs)
                return default_return_val

            @functools.wraps(function)
            def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
                if self.disable_smdebug:
                    return default(*args, **kwargs)
                try:
                    return function(*args, **kwargs)
                except TrainingStopped:  # not an error: this is how a training is stopped
                    raise
                except Exception:
                    if self.hook is not None and not self.hook.has_default_configuration():
                        raise
                    self.disable_smdebug = True
                    self.logger.exception(BASE_ERROR_MESSAGE)
                    return default(*args, **kwargs)

            return guarded

        return wrap


class ErrorHandlingAgent:
    """Holds the agent of this process."""

    _agent: _Agent | None = None

    @classmethod
    def get_error_handling_agent(cls) -> _Agent:
        if cls._agent is None:
            cls._agent = _Agent()
        return cls._agent
