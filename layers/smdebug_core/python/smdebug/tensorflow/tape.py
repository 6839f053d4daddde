"""A gradient tape that reports when it is entered, left and asked for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import tensorflow as tf

from smdebug.exceptions import SMDebugTypeError
from smdebug.tensorflow.compiled_steps import can_call_python

_CANNOT_CALL_PYTHON = (
    "This tape is inside a tf.function that cannot call Python (jit_compile=True, a distribution "
    "strategy, an export) or is the train_step of a model.fit that this hook watches: nothing of the tape "
    "is saved. Compile without XLA, take the decorator off, or train with model.fit."
)


class TapeListener(Protocol):
    """What a tape reports to."""

    def entered(self) -> None: ...

    def left(self) -> None: ...

    def gradients_requested(self, target: Any, sources: Any, gradients: Any) -> None: ...

    def traced(self) -> bool: ...

    def gradients_requested_in_graph(self, target: Any, sources: Any, gradients: Any) -> None: ...


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
    _smdebug_graph: Any = None  # in which the tape was entered, if the function may call Python

    def __enter__(self) -> Any:
        self._smdebug_graph = None
        if tf.executing_eagerly():
            self._smdebug_listener.entered()
        elif can_call_python() and self._smdebug_listener.traced():
            self._smdebug_graph = tf.compat.v1.get_default_graph()
        else:
            self._smdebug_warn_once(_CANNOT_CALL_PYTHON)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        suppressed = super().__exit__(*error)
        self._smdebug_listener.left()
        return suppressed

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def gradient(self, target: Any, sources: Any, *arguments: Any, **more: Any) -> Any:
        gradients = super().gradient(target, sources, *arguments, **more)
        if tf.executing_eagerly():
            self._smdebug_listener.gradients_requested(target, sources, gradients)
        elif self._smdebug_graph is tf.compat.v1.get_default_graph():
            self._smdebug_listener.gradients_requested_in_graph(target, sources, gradients)
        return gradients

    # Both ask for gradients in a loop that TensorFlow vectorizes, where no Python can be called.

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def jacobian(self, *arguments: Any, **more: Any) -> Any:
        with self._out_of_graph():
            return super().jacobian(*arguments, **more)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def batch_jacobian(self, *arguments: Any, **more: Any) -> Any:
        with self._out_of_graph():
            return super().batch_jacobian(*arguments, **more)

    @contextmanager
    def _out_of_graph(self) -> Iterator[None]:
        graph, self._smdebug_graph = self._smdebug_graph, None
        try:
            yield
        finally:
            self._smdebug_graph = graph
