"""What this process does beyond its modules: backward passes, criteria, dropout and loss scales.

PyTorch offers no hooks for these, so its functions are replaced by ones that call listeners first. That
happens once, when the first listener comes; without listeners they do what they did.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch.nn import functional as F  # noqa: N812

from smdebug.pytorch.callbacks import in_backward, is_compiling, not_compiled

CRITERIA = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "ctc_loss"),
)
DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)
UNSCALED = "_smdebug_unscaled"
"""The attribute of a scaled loss that holds the loss as it was."""
# Before PyTorch 2.3 CUDA alone had one.
GradScaler: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


class Listener(Protocol):
    """What is called of a listener."""

    def before_backward(self, tensors: Sequence[Any]) -> None:
        """A backward pass is about to begin with these tensors."""

    def after_criterion(self, name: str, value: Any) -> None:
        """A criterion of `torch.nn.functional` has returned this value; modules call them, too."""

    def before_dropout(self, rate: float) -> None:
        """Dropout is about to be applied."""

    def after_scaling(self, scaler: Any) -> None:
        """A loss was scaled."""


class _Process:
    """The listeners of this process."""

    def __init__(self) -> None:
        self.listeners: WeakSet[Any] = WeakSet()
        self._is_installed = False

    def add(self, listener: Any) -> None:
        """Call the listener from now on, for as long as somebody keeps it."""
        self.listeners.add(listener)
        if not self._is_installed:
            self._is_installed = True
            self._install()

    def discard(self, listener: Any) -> None:
        """Do not call the listener any more."""
        self.listeners.discard(listener)

    def _install(self) -> None:
        torch.autograd.backward = self._backward(torch.autograd.backward)
        for name in CRITERIA:
            setattr(F, name, self._criterion(name, getattr(F, name)))
        for name in DROPOUTS:
            if hasattr(F, name):
                setattr(F, name, self._dropout(getattr(F, name)))
        GradScaler.scale = self._scale(GradScaler.scale)

    def _backward(self, backward: Any) -> Any:
        @functools.wraps(backward, updated=())  # a function out of graphs would stand for ours, too
        def watched_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(tensors, Iterator):  # which can be read once
                tensors = tuple(tensors)
            # A recomputation of activations calls it within a backward pass.
            if self.listeners and not in_backward():
                given = tensors if isinstance(tensors, Sequence) else (tensors,)
                for listener in tuple(self.listeners):
                    listener.before_backward(given)
            return backward(tensors, *args, **kwargs)

        return not_compiled(watched_backward)

    def _criterion(self, name: str, criterion: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(criterion)
        def watched_criterion(*args: Any, **kwargs: Any) -> Any:
            value = criterion(*args, **kwargs)
            if not is_compiling():
                for listener in tuple(self.listeners):
                    listener.after_criterion(name, value)
            return value

        return watched_criterion

    def _dropout(self, dropout: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(dropout)
        def watched_dropout(
            input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
        ) -> Any:
            if training and p and not is_compiling():
                for listener in tuple(self.listeners):
                    listener.before_dropout(p)
            return dropout(input, p, training, inplace)

        return watched_dropout

    def _scale(self, scale: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(scale)
        def watched_scale(scaler: Any, outputs: Any) -> Any:
            scaled = scale(scaler, outputs)
            if self.listeners and isinstance(scaled, torch.Tensor):
                setattr(scaled, UNSCALED, outputs)
                for listener in tuple(self.listeners):
                    listener.after_scaling(scaler)
            return scaled

        return watched_scale


PROCESS = _Process()
