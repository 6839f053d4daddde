"""The callback for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.control import LOOK_EVERY, Agree
from smdebug.saving.framework import require
from smdebug.saving.hook import Checksum
from smdebug.saving.places import Place

require("transformers", "transformers", "huggingface")

from transformers import TrainerCallback  # noqa: E402

from smdebug.pytorch.hook import Hook  # noqa: E402
from smdebug.pytorch.names import class_name, unwrapped  # noqa: E402


class Callback(TrainerCallback):  # type: ignore[misc]
    """Saves losses, weights, gradients, and what layers are given and give, while a Trainer trains.

        callback = smdebug.huggingface.Callback("s3://bucket/run", include_collections=["gradients"])
        Trainer(model=model, args=args, train_dataset=data, callbacks=[callback]).train()

    It takes what `smdebug.pytorch.Hook` takes, or such a hook. A step is a step of the optimizer, however
    many batches it accumulates; each batch of an evaluation is one of mode EVAL. The loss is `loss_output_0`,
    what the Trainer logs is saved as scalars. When the training is asked to stop, the Trainer saves a
    checkpoint and ends; `callback.stopped` tells why. `callback.close()` ends the run, or the process's end.
    """

    def __init__(
        self,
        out_dir: Place | Hook | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        compiled_layers: str = "skip",
        run_id: str | None = None,
        checksum: Checksum = "constant",
        rules: Any = None,
        agree: Agree | None = None,
        on_stop: Callable[[TrainingStopped], object] | None = None,
        look_for_stop: float | None = LOOK_EVERY,
    ):
        self.hook = (
            out_dir
            if isinstance(out_dir, Hook)
            else Hook(
                out_dir,
                compiled_layers=compiled_layers,
                export_tensorboard=export_tensorboard,
                tensorboard_dir=tensorboard_dir,
                dry_run=dry_run,
                reduction_config=reduction_config,
                save_config=save_config,
                include_regex=include_regex,
                include_collections=include_collections,
                save_all=save_all,
                include_workers=include_workers,
                run_id=run_id,
                checksum=checksum,
                rules=rules,
                agree=agree,
                on_stop=on_stop,
                look_for_stop=look_for_stop,
            )
        )
        self.stopped: TrainingStopped | None = None
        self._model: Any = None
        self._handles: list[Any] = []

    def close(self) -> None:
        """End the run."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.hook.close()

    # What the Trainer calls

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._watch(given.get("model"))

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        try:
            self.hook.begin_step(ModeKeys.TRAIN)
        except TrainingStopped as stopped:
            self.stopped = stopped
            control.should_training_stop = True
            control.should_save = True

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.end_step()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.end_step()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
        for name, value in (logs or {}).items():
            if isinstance(value, int | float):
                self.hook.save_scalar(name, value)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.flush()

    def _watch(self, model: Any) -> None:
        if model is None or model is self._model:
            return
        self._model = model
        self.hook.register_module(model)
        own = unwrapped(model)
        self._handles.append(own.register_forward_pre_hook(self._before_forward))
        self._handles.append(own.register_forward_hook(self._after_forward))

    def _before_forward(self, model: Any, inputs: Any) -> None:
        if not model.training:  # in a training step the Trainer itself has said that it begins
            self.hook.begin_step(ModeKeys.EVAL)

    def _after_forward(self, model: Any, inputs: Any, output: Any) -> None:
        if self.hook.saves_now:
            loss = output.get("loss") if isinstance(output, Mapping) else None
            if loss is not None:
                self.hook.record_tensor_value("loss", loss)

    def __repr__(self) -> str:
        return (
            f"Callback({self.hook.out_dir!r}, {class_name(self._model) if self._model else None})"
        )
