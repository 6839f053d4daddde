"""The callback for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from smdebug.exceptions import TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.hooks.framework import require

require("transformers", "transformers", "huggingface")

from transformers import TrainerCallback  # noqa: E402

from smdebug.pytorch.around_hook import AroundHook, TellsHook  # noqa: E402
from smdebug.pytorch.modules.names import class_name, unwrapped  # noqa: E402


class Callback(AroundHook, TrainerCallback):  # type: ignore[misc]
    """Saves losses, weights, gradients, and inputs and outputs of layers, while a Trainer trains.

        callback = smdebug.huggingface.Callback("s3://bucket/run", include_collections=["gradients"])
        Trainer(model=model, args=args, train_dataset=data, callbacks=[callback]).train()

    It takes what `smdebug.pytorch.Hook` takes, or such a hook. A step is a step of the optimizer, however
    many batches it accumulates; each batch of an evaluation is one of mode EVAL. The loss is `loss_output_0`,
    what the Trainer logs is saved as scalars. Under the default plan the loss of every batch is the series
    `loss`, and what is logged are series too. When a stop is requested, the Trainer saves a checkpoint and
    ends; `callback.stopped` has the reason. The run ends with `callback.close()`, or with the process.
    """

    if_no_loss = 'Return it from the model, as "loss"; models of transformers do if a batch has labels'
    _handles: tuple[Any, ...] = ()
    _noted: Any = None  # the model whose training's arguments were noted

    def close(self) -> None:
        """End the run."""
        self._unhook()
        self.hook.close()

    # What the Trainer calls

    def on_init_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Watch the model before it is trained: it may be evaluated only."""
        if self.model is None:
            self._watch(given.get("model"))

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        model = given.get("model")
        self._watch(model)
        self.hook.begin_at(int(state.global_step))
        self.keep_config(lambda: hyperparameters(args, model))

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        try:
            self.hook.begin_step(ModeKeys.TRAIN)
        except TrainingStopped as stopped:
            self.stopped = stopped
            control.should_training_stop = True
            control.should_save = True
        self.hook.guarded(lambda: self.note_epoch(int(state.epoch or 0)))
        if self.model is not self._noted:  # once per training
            self._noted = self.model
            self.hook.guarded(lambda: self.note_arguments(args.to_sanitized_dict()))
            self.hook.guarded(lambda: note_batches_of(self, args, self.model))

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.end_step()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.end_step()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
        for name, value in (logs or {}).items():
            if isinstance(value, int | float):
                self.save_logged(name, value)

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Note the checkpoint that the Trainer has saved."""
        self.note_checkpoint(checkpoint_of(args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.hook.flush()

    def _watch(self, model: Any) -> None:
        if not self.watch_model(model):
            return
        self.hook.begin_steps_by_hand()
        self._unhook()
        own = unwrapped(model)
        self._handles = (
            own.register_forward_pre_hook(self._before_forward, with_kwargs=True),
            own.register_forward_hook(self._after_forward),
        )

    def _unhook(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = ()

    def _before_forward(self, model: Any, inputs: Any, named: Mapping[str, Any]) -> None:
        if not model.training:  # `on_step_begin` begins steps of the training
            self.hook.begin_step(ModeKeys.EVAL)
        self.hook.guarded(lambda: self.observe_batch([*inputs, dict(named)]))

    def _after_forward(self, model: Any, inputs: Any, output: Any) -> None:
        if self.hook.saves_now:
            loss = output.get("loss") if isinstance(output, Mapping) else None
            if loss is not None:
                self.hook.record_tensor_value("loss", loss)

    def __repr__(self) -> str:
        return f"Callback({self.hook.out_dir!r}, {class_name(self.model) if self.model else None})"


def checkpoint_of(args: Any, state: Any) -> Path:
    """Return where the Trainer has just saved; in a search of hyperparameters each trial has a folder."""
    place, name = Path(args.output_dir), f"checkpoint-{state.global_step}"
    of_trials = place.glob(f"*/{name}") if state.is_hyper_param_search else ()
    return max(of_trials, key=lambda found: found.stat().st_mtime, default=place / name)


def note_batches_of(callback: TellsHook, args: Any, model: Any) -> None:
    """Note how many samples each step of this Trainer has."""
    callback.note_batches(
        args.train_batch_size,
        accumulated=args.gradient_accumulation_steps,
        workers=args.world_size,
        of_tokens=getattr(unwrapped(model), "main_input_name", "") == "input_ids",
    )


def hyperparameters(args: Any, model: Any) -> dict[str, Any]:
    """Return the arguments of the Trainer, changed ones first, and the configuration of the model."""
    given = args.to_sanitized_dict()
    defaults = {field.name: field.default for field in fields(args)}
    changed = {name: value for name, value in given.items() if str(value) != str(defaults.get(name))}
    described = getattr(getattr(unwrapped(model), "config", None), "to_diff_dict", dict)
    of_model: dict[str, Any] = described()
    return {**changed, "model": of_model, **given}
