"""The hook for XGBoost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.json_config import create_hook_from_json_config
from smdebug.config.keys import CollectionKeys
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.logger import get_logger
from smdebug.saving.framework import later, require
from smdebug.saving.hook import CallbackHook
from smdebug.xgboost.collection import CollectionManager

require("XGBoost", "xgboost", "xgboost")

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.METRICS]
DEFAULT_SAVE_INTERVAL = 10


class Hook(CallbackHook):
    """Saves what an XGBoost training tells it: `record`, `save_tensor`, `save_scalar`."""

    def __init__(
        self,
        out_dir: Any = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: Any = None,
        include_regex: Any = None,
        include_collections: Any = None,
        save_all: bool = False,
        include_workers: str = "one",
        hyperparameters: Mapping[str, Any] | None = None,
        train_data: Any = None,
        validation_data: Any = None,
        **more: Any,
    ):
        if reduction_config is not None:
            get_logger().warning("reduction_config is ignored: XGBoost's tensors are saved whole")
        super().__init__(
            CollectionManager(),
            DEFAULT_INCLUDE_COLLECTIONS,
            None,
            None,
            out_dir,
            export_tensorboard,
            tensorboard_dir,
            dry_run,
            None,
            SaveConfig(save_interval=DEFAULT_SAVE_INTERVAL) if save_config is None else save_config,
            include_regex,
            include_collections,
            save_all,
            include_workers,
            **more,
        )
        self.hyperparameters = hyperparameters
        self.train_data = train_data
        self.validation_data = validation_data

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Any:
        """A hook as the JSON file says, saving every tenth round unless it says otherwise."""
        return create_hook_from_json_config(
            cls, json_file_path, {"save_interval": DEFAULT_SAVE_INTERVAL}
        )

    # What `xgb.train(callbacks=[hook])` calls, in its old and its new form.
    __call__ = later("XGBoost", "xgb.train(callbacks=[hook])")
    before_training = later("XGBoost", "xgb.train(callbacks=[hook])")
    after_iteration = later("XGBoost", "xgb.train(callbacks=[hook])")
