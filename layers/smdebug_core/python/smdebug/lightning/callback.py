"""The callback for Lightning."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from smdebug.exceptions import TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.hooks.framework import require

# It is imported as `lightning` or as `pytorch_lightning`; a Trainer of one rejects callbacks of the other.
_PACKAGE = "lightning"
if "lightning" not in sys.modules and "pytorch_lightning" in sys.modules:
    _PACKAGE = "pytorch_lightning"
require("Lightning", _PACKAGE, "lightning")

if _PACKAGE == "lightning":
    from lightning.pytorch.callbacks import Callback as LightningCallback
else:
    from pytorch_lightning.callbacks import Callback as LightningCallback

from smdebug.lightning.kept_checkpoints import KeptCheckpoints  # noqa: E402
from smdebug.pytorch.around_hook import AroundHook  # noqa: E402


class Callback(AroundHook, LightningCallback):  # type: ignore[misc]
    """Saves losses, metrics, weights, gradients, and inputs and outputs of layers, in a Trainer's fit.

        callback = smdebug.lightning.Callback("s3://bucket/run", include_collections=["gradients"])
        Trainer(callbacks=[callback]).fit(model, data)

    It takes what `smdebug.pytorch.Hook` takes, or such a hook. A step is a step of the optimizer, however
    many batches it accumulates; each batch of an evaluation is one of mode EVAL. The loss is `loss_output_0`;
    what the module logs is saved as scalars, at saved steps and with the last step of each evaluation. Under
    the default plan the loss of every batch is the series `loss`, and what is logged are series too.

    When a stop is requested, the Trainer ends after the batch; `callback.stopped` has the reason. The run
    ends with `callback.close()`, or with the process.
    """

    if_no_loss = "Return one from training_step and validation_step"

    @cached_property
    def _logged_in(self) -> dict[str, bool]:
        """Whether each name was first logged by a step of the training."""
        return {}

    @cached_property
    def _kept(self) -> KeptCheckpoints:
        return KeptCheckpoints()

    def close(self) -> None:
        """End the run."""
        self.hook.close()

    # What the Trainer calls

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.claim(pl_module)
        self.keep_config(lambda: _arguments(trainer, pl_module))

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        done = trainer.global_step
        if not pl_module.automatic_optimization:  # a batch may update several times, with several optimizers
            done = trainer.fit_loop.epoch_loop.batch_progress.total.completed
        self.hook.begin_at(int(done))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._mark_checkpoints(trainer)
        if batch_idx % trainer.accumulate_grad_batches == 0:
            try:
                self._begin(pl_module, ModeKeys.TRAIN)
            except TrainingStopped as stopped:
                self.stopped = stopped
                trainer.should_stop = True
            self.hook.guarded(lambda: self.note_epoch(trainer.current_epoch))
        if self.hook.saves_now:
            self.hook.guarded(lambda: self.observe_batch(batch))
            self.hook.guarded(lambda: self.note_arguments(_arguments(trainer, pl_module)))
            self.hook.guarded(lambda: self._note_batches(trainer))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        accumulates = (batch_idx + 1) % trainer.accumulate_grad_batches and not trainer.is_last_batch
        if not accumulates and (self.hook.saves_now or self._logs_now(trainer)):
            self._save_metrics(trainer)
        self._record_loss(outputs)
        if not accumulates:
            self.hook.end_step()

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if not trainer.sanity_checking:
            self._mark_checkpoints(trainer)
            self._begin(pl_module, ModeKeys.EVAL)
            self.hook.guarded(lambda: self.observe_batch(batch))

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if not trainer.sanity_checking:
            self._end(outputs)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Save the totals of the evaluation with its last step."""
        if not trainer.sanity_checking:
            self._save_metrics(trainer)

    on_test_batch_start = on_validation_batch_start
    on_test_batch_end = on_validation_batch_end
    on_test_end = on_validation_end

    def on_predict_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self._begin(pl_module, ModeKeys.PREDICT)
        self.hook.guarded(lambda: self.observe_batch(batch))

    def on_predict_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._end(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.hook.end_step(interrupted=True)
        self.hook.flush()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._mark_checkpoints(trainer)
        self.hook.flush()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._mark_checkpoints(trainer)  # what was saved when the training ended

    def _mark_checkpoints(self, trainer: Any) -> None:
        """Note what the Trainer's callbacks have saved since the last step."""
        for path in self._kept.new(trainer):
            self.note_checkpoint(path)

    def _note_batches(self, trainer: Any) -> None:
        loader = trainer.train_dataloader
        size = getattr(loader, "batch_size", None) or getattr(
            getattr(loader, "batch_sampler", None), "batch_size", None
        )
        if isinstance(size, int):
            accumulated = trainer.accumulate_grad_batches
            self.note_batches(size, accumulated=accumulated, workers=trainer.world_size)

    def _begin(self, module: Any, mode: ModeKeys) -> None:
        self.watch_model(module)
        self.hook.begin_step(mode)

    def _end(self, outputs: Any) -> None:
        self._record_loss(outputs)
        self.hook.end_step()

    def _record_loss(self, outputs: Any) -> None:
        hook = self.hook
        if hook.saves_now:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if loss is not None and hook.adapter.is_tensor(loss) and loss.numel() == 1:
                hook.record_tensor_value("loss", loss)

    def _logs_now(self, trainer: Any) -> bool:
        """Whether the Trainer logs at this step, and what it logs is a series."""
        is_kept = self.hook.observations is not None and trainer.log_every_n_steps
        return bool(is_kept) and trainer.global_step % trainer.log_every_n_steps == 0

    def _save_metrics(self, trainer: Any) -> None:
        in_training = self.hook.mode is ModeKeys.TRAIN
        for name, value in trainer.callback_metrics.items():
            # The Trainer keeps what was logged before: a series has each value once.
            is_old = self._logged_in.setdefault(name, in_training) is not in_training
            if self.hook.observations is None or not is_old:
                self.save_logged(name, value)


def _arguments(trainer: Any, module: Any) -> dict[str, Any]:
    """Return what the Trainer and the module were made with."""
    own = {
        name: getattr(trainer, name, None)
        for name in ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val")
    }
    return {**dict(getattr(module, "hparams", {})), **own, "precision": str(trainer.precision)}
