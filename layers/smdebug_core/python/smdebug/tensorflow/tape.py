"""A gradient tape that tells a hook of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from smdebug.tensorflow.keras import KerasHook

_IN_A_GRAPH = (
    "This tape is inside of a tf.function, which is compiled once and then runs by itself: nothing of it is "
    "saved. Take the decorator off, or train with model.fit."
)


def watched(tape: Any, hook: KerasHook) -> Any:
    """The same tape, which tells the hook when it is entered and asked for gradients."""
    if not isinstance(tape, tf.GradientTape):
        raise SMDebugTypeError(f"wrap_tape takes a tf.GradientTape, not {tape!r}")
    if not isinstance(tape, _WatchedTape):
        # `with` looks at the class, so the tape is given one that is its own and ours.
        tape.__class__ = type(type(tape).__name__, (_WatchedTape, type(tape)), {})
    tape._smdebug_hook = hook
    return tape


class _WatchedTape(tf.GradientTape):  # type: ignore[misc]
    _smdebug_hook: KerasHook

    def __enter__(self) -> Any:
        if tf.executing_eagerly():
            self._smdebug_hook.tape_entered()
        else:
            self._smdebug_hook.say_once(_IN_A_GRAPH)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        left = super().__exit__(*error)
        self._smdebug_hook.tape_left()
        return left

    def gradient(self, target: Any, sources: Any, *arguments: Any, **more: Any) -> Any:
        gradients = super().gradient(target, sources, *arguments, **more)
        if tf.executing_eagerly():
            self._smdebug_hook.tape_asked(target, sources, gradients)
        return gradients
