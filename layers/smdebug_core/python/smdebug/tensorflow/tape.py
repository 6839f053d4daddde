"""A gradient tape that reports when it is entered, left and asked for gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

from smdebug.exceptions import SMDebugTypeError

_IN_A_GRAPH = (
    "This tape is inside of a tf.function, which is compiled once and then runs without Python: nothing of "
    "it is saved. Take the decorator off, or train with model.fit."
)


class TapeListener(Protocol):
    """What a tape reports to."""

    def entered(self) -> None: ...

    def left(self) -> None: ...

    def asked(self, target: Any, sources: Any, gradients: Any) -> None: ...


def watched(tape: Any, listener: TapeListener, warn_once: Callable[[str], None]) -> Any:
    """Return the same tape, which now reports to the listener."""
    if not isinstance(tape, tf.GradientTape):
        raise SMDebugTypeError(f"wrap_tape takes a tf.GradientTape, not {tape!r}")
    if not isinstance(tape, _WatchedTape):
        # `with` looks methods up in the class, so the tape gets one that derives from its own and ours.
        tape.__class__ = type(type(tape).__name__, (_WatchedTape, type(tape)), {})
    tape._smdebug_listener = listener
    tape._smdebug_warn_once = warn_once
    return tape


class _WatchedTape(tf.GradientTape):  # type: ignore[misc]
    _smdebug_listener: TapeListener
    _smdebug_warn_once: Callable[[str], None]

    def __enter__(self) -> Any:
        if tf.executing_eagerly():
            self._smdebug_listener.entered()
        else:
            self._smdebug_warn_once(_IN_A_GRAPH)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        suppressed = super().__exit__(*error)
        self._smdebug_listener.left()
        return suppressed

    def gradient(self, target: Any, sources: Any, *arguments: Any, **more: Any) -> Any:
        gradients = super().gradient(target, sources, *arguments, **more)
        if tf.executing_eagerly():
            self._smdebug_listener.asked(target, sources, gradients)
        return gradients
