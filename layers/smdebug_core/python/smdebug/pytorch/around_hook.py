"""What the callbacks of Trainers around PyTorch share: they take what the hook takes, or a hook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import TrainingStopped
from smdebug.pytorch.hook import Hook, TorchOptions
from smdebug.saving.options import takes
from smdebug.saving.places import Place


@dataclass(frozen=True)
class CallbackOptions(TorchOptions):
    """What such a callback takes: a hook, or the options of one."""

    out_dir: Place | Hook | None = None  # type: ignore[assignment]


class AroundHook:
    """A callback that drives a hook."""

    @takes(CallbackOptions)
    def __init__(self, options: CallbackOptions):
        super().__init__()
        given = options.out_dir
        self.hook = given if isinstance(given, Hook) else Hook(**options.as_arguments())
        self.stopped: TrainingStopped | None = None
        self.model: Any = None

    def watch_model(self, model: Any) -> bool:
        """Watch this model in the place of the one before; return whether it is another one."""
        before = self.model
        if model is None or model is before:
            return False
        if before is not None and self.hook.has_module(before):
            self.hook.leave_module(before)
        self.model = model
        self.hook.register_module(model)
        return True
