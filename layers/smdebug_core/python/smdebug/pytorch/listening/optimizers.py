"""Callbacks around the steps of every optimizer in the process.

Before PyTorch 2.3 the first compilation removes the callbacks of all optimizers. They are restored here.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

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


def optimizers() -> list[torch.optim.Optimizer]:
    """Find the optimizers of this process."""
    # isinstance would ask an object for its class, which may do anything.
    return [known for known in gc.get_objects() if issubclass(type(known), torch.optim.Optimizer)]


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
