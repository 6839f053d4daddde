"""Does an optimizer's step on copies, to be compared with what the step of the training gives.

One parameter is copied at a time. Of its result a digest is kept.
"""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as of_torch

from smdebug.pytorch.listening.optimizers import owned_by
from smdebug.pytorch.repeating.compared_digests import Digests
from smdebug.pytorch.repeating.stored_copies import can_compare
from smdebug.pytorch.tensors.rows import digest_of

TIMES = 2
"""How often the step is done on copies: they show whether it gives the same each time."""
ELEMENTWISE = frozenset(
    "ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD".split()  # noqa: SIM905
)
"""The optimizers of PyTorch that update each value by itself, so that no order of summation changes bits."""


def can_repeat(optimizer: Any) -> bool:
    """Whether nothing but the step of one of PyTorch's optimizers changes parameters while it steps."""
    kind, updated = type(optimizer), _updated(optimizer)
    hooks = [*of_torch._global_optimizer_pre_hooks.values(), *of_torch._global_optimizer_post_hooks.values()]
    return (
        kind.__name__ in ELEMENTWISE
        and kind.__module__.startswith("torch.optim.")
        and not (optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks)
        and all(str(getattr(hook, "__module__", "")).startswith("smdebug.") for hook in hooks)
        and not any(group.get("differentiable") for group in optimizer.param_groups)
        and all(can_compare(each) and can_compare(each.grad) for each in updated)
        and len({each.device for each in updated}) == 1
        and len({each.data_ptr() for each in updated}) == len(updated)
    )


def digests_after_step(optimizer: Any, names: Mapping[int, str]) -> list[Digests]:
    """Do the step of the optimizer on copies of all that have names, some times; return their digests."""
    found: list[Digests] = [[] for _ in range(TIMES)]
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and id(parameter) in names:
                for digests in found:
                    twin, state = _stepped(optimizer, group, parameter)
                    digests += _digests(names[id(parameter)], twin, state)
    return found


def digests_now(optimizer: Any, names: Mapping[int, str]) -> Digests:
    """The digests of all parameters of the optimizer that have names and gradients, and of their state."""
    return [
        digest
        for parameter in _updated(optimizer)
        if id(parameter) in names
        for digest in _digests(names[id(parameter)], parameter, optimizer.state.get(parameter, {}))
    ]


def state_tensors(name: str, state: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that an optimizer keeps for the parameter of that name, each with a name."""
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            yield f"{key} of {name}", value


def _stepped(optimizer: Any, group: dict[str, Any], parameter: nn.Parameter) -> tuple[Any, Any]:
    """A copy of the parameter after the step, and what the optimizer then keeps for it."""
    twin = parameter.detach().clone()
    assert parameter.grad is not None
    twin.grad = parameter.grad.detach().clone()
    copied = object.__new__(type(optimizer))
    vars(copied).update(vars(optimizer))
    copied.param_groups = [{**group, "params": [twin]}]
    copied.state = defaultdict(dict)
    if parameter in optimizer.state:
        copied.state[twin] = {key: _copy(value) for key, value in optimizer.state[parameter].items()}
    with torch.no_grad():
        inspect.unwrap(type(optimizer).step)(copied)
    return twin, copied.state.get(twin, {})


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)


def _digests(name: str, parameter: torch.Tensor, state: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    with torch.no_grad():
        for of, tensor in [(name, parameter), *state_tensors(name, state)]:
            yield of, digest_of(tensor.detach()).cpu().numpy().tobytes()


def _updated(optimizer: Any) -> list[Any]:
    return [each for each in owned_by(optimizer) if each.grad is not None]
