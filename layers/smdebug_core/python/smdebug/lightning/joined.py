"""A callback that joins every Trainer of Lightning in a watched process by itself.

It passes what the Trainer calls to `smdebug.lightning.Callback`, around a hook that `smdebug.start` makes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable as Function
from importlib import import_module
from typing import Any

from smdebug.lightning.callback import Callback
from smdebug.pytorch.joining import Contained, hook_to_drive
from smdebug.pytorch.modules.models import claim, release

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_PASSED_ON = (
    "on_train_start",
    "on_train_batch_start",
    "on_train_batch_end",
    "on_validation_batch_start",
    "on_validation_batch_end",
    "on_validation_end",
    "on_test_batch_start",
    "on_test_batch_end",
    "on_test_end",
    "on_predict_batch_start",
    "on_predict_batch_end",
    "on_predict_end",
    "on_train_end",
)


class Driving(Callback):
    """The callback around a hook that numbers the steps of the training, and evaluations by them."""

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        super().on_validation_end(trainer, pl_module)
        if not trainer.sanity_checking:
            self.hook.end_step()

    on_test_end = on_validation_end

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.hook.end_step()

    def _end(self, outputs: Any) -> None:
        self._record_loss(outputs)  # all batches of an evaluation are one step


class Joining:
    """What joins a Trainer: it drives a hook in each `fit`, unless a person has given a callback."""

    def __init__(self) -> None:
        self._driving: Driving | None = None
        self._contained = Contained("The Trainer is not watched from here on")

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the Trainer, in another process, has a hook of its own."""
        return _joined_to, (package_of(self),)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._contained.call(self._begin, trainer, pl_module, stage)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._pass_on("teardown", trainer, pl_module, stage)
        release(pl_module)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._pass_on("on_exception", trainer, pl_module, exception)
        release(pl_module)

    def _begin(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if any(isinstance(known, Callback) for known in trainer.callbacks):
            self._driving = None
            return
        if stage == "fit":
            hook = hook_to_drive()
            if hook is None:  # no longer watched
                self._driving = None
            elif self._driving is None or self._driving.hook is not hook:
                self._driving = Driving(hook)
        if self._driving is not None:
            claim(pl_module, self._driving.hook)
            self._driving.setup(trainer, pl_module, stage)

    def _pass_on(self, event: str, *given: Any) -> None:
        if self._driving is not None:
            self._contained.call(getattr(self._driving, event), *given)


def watch(make_hook: Function[[Any], Any]) -> None:
    """Let a callback join every Trainer that is made from now on; the watcher of PyTorch makes the hook."""
    for package in _PACKAGES:
        module = sys.modules.get(f"{package}.trainer.trainer")
        trainer = getattr(module, "Trainer", None)
        if trainer is not None and not hasattr(trainer.__init__, "_smdebug_joins"):
            trainer.__init__ = _joining(trainer.__init__, package)


def _joining(made: Any, package: str) -> Any:
    @functools.wraps(made)
    def joined(trainer: Any, *args: Any, **given: Any) -> None:
        made(trainer, *args, **given)
        Contained("The Trainer is not watched").call(_join, trainer, package)

    joined._smdebug_joins = True  # type: ignore[attr-defined]
    return joined


def _join(trainer: Any, package: str) -> None:
    if not any(isinstance(known, Joining) for known in trainer.callbacks):
        trainer.callbacks.append(_joined_to(package))


def package_of(joined: Joining) -> str:
    """Return the package whose Trainer this callback is for."""
    return next(name for name in _PACKAGES if isinstance(joined, import_module(f"{name}.callbacks").Callback))


def _joined_to(package: str) -> Joining:
    made: Joining = _class_for(package)()
    return made


@functools.cache
def _class_for(package: str) -> type[Any]:
    """Return the class for Trainers of that package, which reject callbacks of the other."""
    base = import_module(f"{package}.callbacks").Callback
    return type("Joined", (Joining, base), {event: _passing(event) for event in _PASSED_ON})


def _passing(event: str) -> Any:
    def passed_on(joined: Joining, *given: Any, **named: Any) -> None:
        joined._pass_on(event, *given, *named.values())

    passed_on.__name__ = event
    return passed_on
