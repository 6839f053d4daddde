"""The losses of a PyTorch training: those that are registered, and recorded tensors that are losses."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from smdebug.config.keys import CollectionKeys
from smdebug.pytorch.modules.layers import NUMBERS_TRIED
from smdebug.pytorch.modules.names import Layer, class_name
from smdebug.saving.hooks.hook import CallbackHook


def is_loss(name: str, value: Any) -> bool:
    """Return whether a recorded value is a loss: by its name, or a single number that has a gradient."""
    if "loss" in name.lower():
        return True
    return isinstance(value, torch.Tensor) and value.numel() == 1 and value.requires_grad


class Losses:
    """The registered losses of a hook. Their outputs are in the collection `losses`, whatever their names."""

    def __init__(self, hook: CallbackHook):
        self._hook = hook
        self._modules: list[nn.Module] = []

    @property
    def modules(self) -> list[nn.Module]:
        """The registered losses, in order."""
        return list(self._modules)

    @property
    def layers(self) -> list[Layer]:
        """The registered losses, each under the name of its class."""
        return [Layer(class_name(loss), loss, False) for loss in self._modules]

    def add(self, module: nn.Module) -> None:
        """Register a loss."""
        self._modules.append(module)
        self.include_outputs(class_name(module))

    def clear(self) -> None:
        """Unregister all losses."""
        self._modules.clear()

    def include_outputs(self, name: str) -> None:
        """Put all outputs of that name into `losses`."""
        losses = self._hook.get_collection(CollectionKeys.LOSSES)
        if any(re.search(regex, f"{name}_output_0") for regex in losses.include_regex):
            return
        self._hook.include_without_choosing(losses, f"^{re.escape(name)}_output_")
        for number in range(NUMBERS_TRIED):  # if the run has begun, its patterns are final
            self._hook.assign(f"{name}_output_{number}", CollectionKeys.LOSSES)

    def include_recorded(self, name: str, values: Any) -> None:
        """Put those of the values into `losses` that are losses, before they are recorded."""
        tensors = list(self._hook.tensors_in(values)) or [values]
        for number, tensor in enumerate(tensors, self._hook.count_outputs(name)):
            if is_loss(name, tensor):
                self._hook.assign(f"{name}_output_{number}", CollectionKeys.LOSSES)
