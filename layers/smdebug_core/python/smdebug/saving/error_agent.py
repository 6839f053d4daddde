"""What happens when a hook nobody configured fails inside somebody else's training: nothing.

Framework hooks may be there without the user knowing (SageMaker adds them). As long as such a hook has its
default configuration, an error in it is logged once and switches the library off for the rest of the
process. Who has configured a hook wants to hear of its errors: there they are raised.
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
    """Knows the hook, and whether the library is switched off."""

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

        A default that can be called is called with the callback's arguments.
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
                except TrainingStopped:  # no error: that is how a training is ended
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
    """Finds the one agent of this process."""

    _agent: _Agent | None = None

    @classmethod
    def get_error_handling_agent(cls) -> _Agent:
        if cls._agent is None:
            cls._agent = _Agent()
        return cls._agent
