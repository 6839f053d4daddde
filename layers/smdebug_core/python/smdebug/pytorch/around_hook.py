"""What the callbacks of Trainers around PyTorch share: they take what the hook takes, or a hook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.hook import Hook
from smdebug.saving.control import LOOK_EVERY, Agree
from smdebug.saving.hook import Checksum
from smdebug.saving.places import Place


class AroundHook:
    """A callback that drives a hook."""

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
        super().__init__()
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

    def _watch_model(self, model: Any) -> bool:
        """Watch this model, in the place of the one before. Was it another one?"""
        before = self._model
        if model is None or model is before:
            return False
        if before is not None and self.hook.has_module(before):
            self.hook.leave_module(before)
        self._model = model
        self.hook.register_module(model)
        return True
