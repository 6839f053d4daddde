"""The mode of the steps of a script that sets none: `model.training` says it, unless that was forgotten."""

from __future__ import annotations

import torch
from torch import nn

from smdebug.mode_keys import ModeKeys


class TrainingFlag:
    """What `model.training` has said, and what contradicts it."""

    def __init__(self) -> None:
        self.is_followed = False
        """Whether it says the mode of steps; otherwise the script does."""
        self.says_evaluation = False
        """Of the model, when it was called last."""
        self.recomputes = False
        """A training forward keeps no gradients: the backward pass repeats it."""
        self._was_forgotten = False

    def mode_of(self, module: nn.Module) -> ModeKeys:
        """Return the mode of the step that a forward of the model begins."""
        self.says_evaluation = not module.training
        self._was_forgotten = self._was_forgotten and not module.training
        trains = (module.training or self._was_forgotten) and torch.is_grad_enabled()
        trains = trains or (module.training and self.recomputes)
        return ModeKeys.TRAIN if trains else ModeKeys.EVAL

    def recomputed(self, mode: ModeKeys) -> None:
        """Note a forward of the model within a backward pass, at a step of that mode.

        If the step began with a forward in which gradients were not kept, that is reentrant checkpointing.
        """
        self.recomputes = self.recomputes or (self.is_followed and mode is ModeKeys.EVAL)

    def updated(self) -> bool:
        """Note an update of parameters at a step of evaluation; return whether `train()` was forgotten."""
        if not self.says_evaluation or self.recomputes:  # the first step: from the next one on that is known
            return False
        self._was_forgotten = True
        return True
