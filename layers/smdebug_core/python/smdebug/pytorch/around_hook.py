"""The common part of callbacks for Trainers around PyTorch: they take the options of the hook, or a hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import SMDebugError, TrainingStopped
from smdebug.files.names import EPOCHS
from smdebug.logger import get_logger
from smdebug.pytorch.hook import Hook, TorchOptions
from smdebug.pytorch.modules.models import claim
from smdebug.pytorch.observing.facts import batch_facts
from smdebug.saving.hooks.options import takes
from smdebug.saving.place.places import Place
from smdebug.saving.process.training_arguments import plain_arguments

BATCH = "batch"
"""Under the default plan, tensors of the batch are measured as `batch_input_0` and so on."""


@dataclass(frozen=True)
class CallbackOptions(TorchOptions):
    """What such a callback takes: a hook, or the options of one."""

    out_dir: Place | Hook | None = None  # type: ignore[assignment]


class TellsHook:
    """What a Trainer says of itself, told to the hook that watches its training."""

    hook: Any
    _arguments: dict[str, Any] | None = None

    def save_logged(self, name: str, value: Any) -> None:
        """Save a number that the Trainer logs."""
        try:
            self.hook.log({name: value})
        except SMDebugError as error:  # the user has logged it with the Trainer, and not here
            self.hook.warn_once(f"{name} is not kept: {error}", f"logged {name}")

    def note_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Note the arguments of the training as a fact."""
        observations = self.hook.noted
        if observations is None or self.hook.origin.keeps_versions_only:
            return
        plain = plain_arguments(arguments)
        if plain != self._arguments:
            self._arguments = plain
            observations.note_lasting(arguments=plain)

    def note_batches(
        self, per_device: int, *, accumulated: int = 1, workers: int = 1, of_tokens: bool = False
    ) -> None:
        """Note how many samples a step has: whoever reads the run cannot count those of other devices."""
        observations = self.hook.noted
        if observations is not None:
            known = {"per_device": int(per_device), "accumulated": int(accumulated), "workers": int(workers)}
            observations.note_lasting(batches={**known, "of_tokens": of_tokens})

    def note_checkpoint(self, path: Any) -> None:
        """Note where the Trainer has saved the weights."""
        if not self.hook.origin.keeps_versions_only:
            self.hook.guarded(lambda: self.hook.mark_checkpoint(path))

    def keep_config(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Add the arguments of the training to the hyperparameters of the run."""
        try:
            self.hook.add_config(make())
        except Exception as error:  # noqa: BLE001 - of a Trainer of another version
            get_logger().warning(
                "The arguments of the Trainer are not kept: %s: %s", type(error).__name__, error
            )


class AroundHook(TellsHook):
    """A callback that drives a hook."""

    if_no_loss = ""
    """What to do if a run has ended without a loss."""

    @takes(CallbackOptions)
    def __init__(self, options: CallbackOptions):
        super().__init__()
        given = options.out_dir
        if isinstance(given, Hook):
            self.hook = given
        else:
            self.hook = Hook(**options.as_arguments())
            self.hook.observes = True
        self.hook.if_no_step = "Pass the callback to the Trainer: Trainer(…, callbacks=[callback])"
        self.hook.if_no_loss = self.if_no_loss
        self.stopped: TrainingStopped | None = None
        self.model: Any = None
        self._epochs_over = -1

    def note_epoch(self, over: int) -> None:
        """Note how many epochs are over, if the step that has begun is the first of one."""
        if over != self._epochs_over:
            self._epochs_over = over
            self.hook.carry(EPOCHS, float(over))

    def observe_batch(self, batch: Any) -> None:
        """Note the form of a batch, which a model may take in any way; measure it under the default plan."""
        hook = self.hook
        if hook.noted is not None and hook.saves_now:
            if hook.observations is not None:
                hook.observe_inputs_of(BATCH)
                hook.record_inputs(BATCH, batch)
            hook.noted.note(**batch_facts(list(hook.tensors_in(batch))))

    def watch_model(self, model: Any) -> bool:
        """Watch this model instead of the previous one; return whether it is another one."""
        before = self.model
        if model is None or model is before:
            return False
        if before is not None and self.hook.has_module(before):
            self.hook.leave_module(before)
        self.model = model
        self.claim(model)
        self.hook.register_module(model)
        return True

    def claim(self, model: Any) -> None:
        """Let nothing else watch this model, such as `smdebug.start`: each step is recorded once."""
        claim(model, self.hook)
