"""The optimizers of the process, and callbacks around the steps of every one of them.

Before PyTorch 2.3 the first compilation removes the callbacks of all optimizers. They are restored here.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

_LOSES_CALLBACKS = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3)


def before_steps(callback: Callable[..., Any]) -> Any:
    """Call back with every optimizer before its step; return the handle that removes the callback."""
    _keep_callbacks()
    return register_optimizer_step_pre_hook(callback)


def after_steps(callback: Callable[..., Any]) -> Any:
    """Call back with every optimizer after its step; return the handle that removes the callback."""
    _keep_callbacks()
    return register_optimizer_step_post_hook(callback)


class _Optimizers:
    """The optimizers of this process. They are sought once, among all its objects, and noted from then on.

    To look at 300,000 objects, as many as PyTorch itself has, takes as long as a hundred steps of a small
    training. Noted is what calls `Optimizer.__init__`, or is copied or unpickled.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[int, torch.optim.Optimizer] = WeakValueDictionary()
        self._listeners: list[Callable[[Any], None]] = []
        self._is_noting = False

    def all(self) -> list[torch.optim.Optimizer]:
        """Return those that exist, in the order in which they were found."""
        if not self._is_noting:
            self._begin()
        return list(self._known.values())

    def tell(self, listener: Callable[[Any], None]) -> None:
        """Call the listener with every optimizer: with those that exist now, and with others once made."""
        known = self.all()
        self._listeners.append(listener)
        for optimizer in known:
            listener(optimizer)

    def _begin(self) -> None:
        self._is_noting = True
        kind: Any = torch.optim.Optimizer
        made, restored = kind.__init__, kind.__setstate__

        @functools.wraps(made)
        def optimizer_made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            made(optimizer, *args, **kwargs)
            self._known[id(optimizer)] = optimizer
            for listener in self._listeners:
                listener(optimizer)

        @functools.wraps(restored)
        def optimizer_restored(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            restored(optimizer, *args, **kwargs)
            self._known[id(optimizer)] = optimizer

        kind.__init__, kind.__setstate__ = optimizer_made, optimizer_restored
        # isinstance would ask an object for its class, which may do anything.
        self._known.update((id(found), found) for found in gc.get_objects() if issubclass(type(found), kind))


_OPTIMIZERS = _Optimizers()


def optimizers() -> list[torch.optim.Optimizer]:
    """Return the optimizers of this process."""
    return _OPTIMIZERS.all()


def tell_of_optimizers(listener: Callable[[Any], None]) -> None:
    """Call the listener with every optimizer of this process, now or when it is made."""
    _OPTIMIZERS.tell(listener)


def owned_by(optimizer: Any) -> list[Any]:
    """Return the parameters of all groups of an optimizer; none of one that is being made."""
    return [each for group in getattr(optimizer, "param_groups", ()) for each in group["params"]]


def named_in(optimizer: Any, names: Mapping[int, str]) -> list[tuple[str, Any]]:
    """Return the parameters of an optimizer whose ids have names, each with its name."""
    return [(names[id(each)], each) for each in owned_by(optimizer) if id(each) in names]


def _keep_callbacks() -> None:
    if _LOSES_CALLBACKS:
        for kind in _optimizers(torch.optim.Optimizer):
            if "step" in vars(kind) and getattr(kind.step, "hooked", False) and not _calls_back(kind.step):
                kind.step = torch.optim.Optimizer.profile_hook_step(kind.step)
                kind.step.hooked = True


def _optimizers(kind: Any) -> Iterator[Any]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _optimizers(inner)


def _calls_back(step: Any) -> bool:
    """Return whether PyTorch's own wrapper, which calls back, is around the step."""
    while step is not None:
        code = getattr(step, "__code__", None)
        if code is not None and code.co_name == "wrapper" and "func" in code.co_freevars:
            return True
        step = getattr(step, "__wrapped__", None)
    return False
