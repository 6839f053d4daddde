"""The callback for Lightning."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.framework import require

# It is imported as `lightning` or as `pytorch_lightning`; a Trainer of one takes no callback of the other.
_PACKAGE = "lightning"
if "lightning" not in sys.modules and "pytorch_lightning" in sys.modules:
    _PACKAGE = "pytorch_lightning"
require("Lightning", _PACKAGE, "lightning")

if _PACKAGE == "lightning":
    from lightning.pytorch.callbacks import Callback as LightningCallback
else:
    from pytorch_lightning.callbacks import Callback as LightningCallback

from smdebug.pytorch.around_hook import AroundHook  # noqa: E402


class Callback(AroundHook, LightningCallback):  # type: ignore[misc]
    """Saves losses, metrics, weights, gradients, and inputs and outputs of layers, in a Trainer's fit.

        callback = smdebug.lightning.Callback("s3://bucket/run", include_collections=["gradients"])
        Trainer(callbacks=[callback]).fit(model, data)

    It takes what `smdebug.pytorch.Hook` takes, or such a hook. A batch is a step; modes set themselves. The
    loss is `loss_output_0`; what the module logs is saved as scalars, at saved steps and with the last step
    of each evaluation. When a stop is requested, the Trainer ends after the batch; `callback.stopped` has the
    reason. The run ends with `callback.close()`, or with the process.
    """

    def close(self) -> None:
        """End the run."""
        self.hook.close()

    # What the Trainer calls

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        try:
            self._begin(pl_module, ModeKeys.TRAIN)
        except TrainingStopped as stopped:
            self.stopped = stopped
            trainer.should_stop = True

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.hook.saves_now:
            self._save_metrics(trainer)
        self._end(outputs)

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if not trainer.sanity_checking:
            self._begin(pl_module, ModeKeys.EVAL)

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
        self.hook.flush()

    def _begin(self, module: Any, mode: ModeKeys) -> None:
        self.watch_model(module)
        self.hook.begin_step(mode)

    def _end(self, outputs: Any) -> None:
        hook = self.hook
        if hook.saves_now:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if loss is not None and hook.adapter.is_tensor(loss) and loss.numel() == 1:
                hook.record_tensor_value("loss", loss)
        hook.end_step()

    def _save_metrics(self, trainer: Any) -> None:
        for name, value in trainer.callback_metrics.items():
            self.hook.save_scalar(name, value)
