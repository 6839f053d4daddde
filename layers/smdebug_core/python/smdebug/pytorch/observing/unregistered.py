"""Parameters that a model computes with and does not have: those of layers in a plain list or dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import ref

import torch
from torch import nn

from smdebug.pytorch.listening.optimizers import owned_by

MAX_PLACES = 64
"""How many such parameters of a model are known at most."""
MAX_NAMED = 8
_MOST_ITEMS, _DEEPEST = 32, 2
_OWN = frozenset(vars(nn.Module()))


class Unregistered:
    """The trainable parameters in plain containers of some models, each with the path to it."""

    def __init__(self, models: Iterable[tuple[nn.Module, str]]):
        known = list(models)
        registered = {id(parameter) for model, _ in known for parameter in model.parameters()}
        found = [
            (place, parameter)
            for model, root in known
            for place, parameter in _hidden(model, root)
            if parameter.requires_grad and id(parameter) not in registered
        ]
        self._places = [(place, ref(parameter)) for place, parameter in found[:MAX_PLACES]]

    def __bool__(self) -> bool:
        return bool(self._places)

    def without_owner(self, optimizers: Iterable[Any]) -> list[str]:
        """Return the paths of those that have a gradient and belong to none of the optimizers."""
        learning = [
            (place, parameter)
            for place, known in self._places
            if (parameter := known()) is not None and _has_gradient(parameter)
        ]
        if not learning:
            return []
        owned = {id(each) for optimizer in optimizers for each in owned_by(optimizer)}
        return [place for place, parameter in learning if id(parameter) not in owned]


def _has_gradient(parameter: torch.Tensor) -> bool:
    gradient = parameter.grad
    return gradient is not None and (not gradient.is_cpu or bool(gradient.any()))


def _hidden(model: nn.Module, root: str) -> Iterator[tuple[str, torch.Tensor]]:
    for path, module in model.named_modules():
        prefix = f"{root}.{path}" if path else root
        for name, value in vars(module).items():
            if name not in _OWN:
                yield from _inside(value, f"{prefix}.{name}", 0)


def _inside(value: Any, place: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    kind = type(value)
    if depth and isinstance(value, nn.Module):
        if value.training:  # one in evaluation mode was left out on purpose
            for name, parameter in value.named_parameters():
                yield f"{place}.{name}", parameter
    elif isinstance(value, torch.Tensor):
        if value.is_leaf:
            yield place, value
    elif depth < _DEEPEST and kind in (list, tuple, dict):
        items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, Mapping) else enumerate(value)
        for at, (key, item) in enumerate(items):
            if at == _MOST_ITEMS:
                break
            yield from _inside(item, f"{place}[{key!r}]", depth + 1)
