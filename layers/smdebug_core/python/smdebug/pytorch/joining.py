"""What callbacks need that join the Trainers of a watched process by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smdebug.logger import get_logger
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.modules.models import is_claimed
from smdebug.pytorch.unchanged import watchers


def watching_hook(model: Any) -> Hook | None:
    """Return the hook that watches the training of this model now, if it is no callback's own."""
    if model is not None and is_claimed(model):
        return None
    return next((watcher.hook for watcher in watchers if watcher.hook is not None), None)


def hook_to_drive() -> Hook | None:
    """Return a hook for a callback that joins a Trainer and begins steps; None if nothing is watched."""
    hooks = (watcher.hook_to_drive() for watcher in watchers)
    return next((hook for hook in hooks if hook is not None), None)


def expect_training(first_step: int) -> None:
    """Expect that the next model that is called to be trained takes the place of the one before, at once.

    A Trainer that goes on from a checkpoint begins with another step than 0.
    """
    for watcher in watchers:
        watcher.expect_training(first_step)


class Contained:
    """Calls whose errors end no training: the first is said, and nothing is called after it."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence
        self._has_failed = False

    def call(self, react: Callable[..., object], *given: Any, **named: Any) -> None:
        """Call that, unless an earlier call has failed."""
        if self._has_failed:
            return
        try:
            react(*given, **named)
        except Exception as error:  # noqa: BLE001 - of a Trainer of another version
            self._has_failed = True
            get_logger().warning("%s: %s: %s", self._consequence, type(error).__name__, error)
