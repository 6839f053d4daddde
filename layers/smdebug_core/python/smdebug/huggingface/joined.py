"""A callback that joins every Trainer of a watched process by itself, and tells what the Trainer says.

The tensors are watched as in any PyTorch script; this adds the numbers that the Trainer logs, its arguments,
its checkpoints and the size of its batches, and lets it end gently if a stop is requested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from smdebug.huggingface.callback import (
    Callback,
    checkpoint_of,
    hyperparameters,
    note_batches_of,
)
from smdebug.pytorch import joining
from smdebug.pytorch.around_hook import TellsHook
from smdebug.pytorch.joining import Contained

_MOST_WAITING = 100
_RATE = "learning_rate"  # which the default plan measures
Event = Callable[..., None]


def _contained(event: Event) -> Event:
    @functools.wraps(event)
    def safely(joined: Joined, *given: Any, **named: Any) -> None:
        joined.contained.call(event, joined, *given, **named)

    return safely


class Joined(TellsHook, TrainerCallback):  # type: ignore[misc]
    """Tells the hook that `smdebug.start` has made what a Trainer logs, saves and was given.

    It says nothing where a person has given `smdebug.huggingface.Callback` to the Trainer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.contained = Contained("What the Trainer says is not kept from here on")
        self._has_told, self._first_step = False, 0
        self._said_before: list[dict[str, float]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the Trainer, in another process, tells the hook of that one."""
        return Joined, ()

    @_contained
    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._has_told, self._first_step = False, int(state.global_step)
        joining.expect_training(self._first_step)

    @_contained
    def on_substep_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._tell_once(args, given.get("model"))

    @_contained
    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._tell_once(args, given.get("model"))
        hook = joining.watching_hook(given.get("model"))
        if hook is not None and hook.stopped is not None:
            control.should_training_stop = True
            control.should_save = True

    @_contained
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
        numbers = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        if self._finds_hook(given.get("model")):
            for name, value in numbers.items():
                if name != _RATE or self.hook.observations is None:
                    self.save_logged(name, value)
        elif len(self._said_before) < _MOST_WAITING:
            self._said_before.append(numbers)  # of an evaluation before the training

    @_contained
    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if self._finds_hook(given.get("model")):
            self.note_checkpoint(checkpoint_of(args, state))

    @_contained
    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if self._finds_hook(given.get("model")):
            self.hook.stop_gently(False)

    def _finds_hook(self, model: Any) -> bool:
        self.hook = joining.watching_hook(model)
        return self.hook is not None

    def _tell_once(self, args: Any, model: Any) -> None:
        """Tell what the Trainer was given, once the first step of its training has begun."""
        if self._has_told or not self._finds_hook(model):
            return
        self._has_told = True
        hook = self.hook
        hook.stop_gently(True)
        self.keep_config(lambda: hyperparameters(args, model))
        hook.guarded(lambda: self.note_arguments(args.to_sanitized_dict()))
        hook.guarded(lambda: note_batches_of(self, args, model))
        waiting, self._said_before = self._said_before, []
        for numbers in waiting:
            hook.log(numbers, step=self._first_step)


def watch(make_hook: Callable[[Any], Any]) -> None:
    """Let a callback join every Trainer made from now on; the watcher of PyTorch asks for the hook."""
    from transformers.trainer import Trainer

    made: Any = Trainer.__init__

    @functools.wraps(made)
    def made_and_joined(trainer: Any, *args: Any, **given: Any) -> None:
        made(trainer, *args, **given)
        Contained("What the Trainer says is not kept").call(_join, trainer)

    Trainer.__init__ = made_and_joined


def _join(trainer: Any) -> None:
    if not any(isinstance(known, Callback | Joined) for known in trainer.callback_handler.callbacks):
        trainer.add_callback(Joined())
