"""What a forward may change besides parameters: random numbers, buffers and attributes of its modules."""

from __future__ import annotations

import copy
import random
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import nn

_OF_PYTORCH = frozenset(vars(nn.Module())) - {"training"}
_CONTAINERS = (list, dict, set, deque)


class ForwardState:
    """That state as it is now, to be put back, any number of times.

    With `copied`, buffers and containers are copied whenever they are put back, so that what follows changes
    the copies. Otherwise they are the objects themselves.
    """

    def __init__(self, root: nn.Module, device: torch.device, *, copied: bool = True):
        self._copied = copied
        self._device = device
        self._numbers = (torch.get_rng_state(), random.getstate(), np.random.get_state())
        self._of_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        self._modules = [
            (module, self._kept(_own(module)), self._kept(module._buffers)) for module in root.modules()
        ]

    def put(self) -> None:
        """Put the state back."""
        numbers, of_python, of_numpy = self._numbers
        torch.set_rng_state(numbers)
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        if self._of_device is not None:
            torch.cuda.set_rng_state(self._of_device, self._device)
        for module, own, buffers in self._modules:
            for name in _own(module).keys() - own.keys():
                del vars(module)[name]
            vars(module).update(self._kept(own))
            module._buffers.update(self._kept(buffers))

    def _kept(self, values: dict[str, Any]) -> dict[str, Any]:
        if not self._copied:
            return dict(values)
        return {name: _copy(value) for name, value in values.items()}


def _own(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in _OF_PYTORCH}


def _copy(value: Any) -> Any:
    """The value, in a form that no operation on it in place changes."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if value.grad_fn is None and not value.requires_grad else value
    return copy.copy(value) if isinstance(value, _CONTAINERS) else value
