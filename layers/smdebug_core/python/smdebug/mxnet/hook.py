"""The hook for MXNet."""

from __future__ import annotations

from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.mxnet.collection import CollectionManager
from smdebug.saving.framework import later, require
from smdebug.saving.hook import CallbackHook

require("MXNet", "mxnet", "mxnet")

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]


class Hook(CallbackHook):
    """Saves what a MXNet training tells it: `record`, `record_tensor_value`, `save_tensor`, `save_scalar`."""

    def __init__(self, out_dir: Any = None, *arguments: Any, **settings: Any):
        super().__init__(
            CollectionManager(),
            DEFAULT_INCLUDE_COLLECTIONS,
            None,
            "NDArray",
            out_dir,
            *arguments,
            **settings,
        )

    register_block = later("MXNet", "register_block")
    register_hook = later("MXNet", "register_hook")

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> Any:
        if hasattr(tensor_value, "asnumpy"):
            tensor_value = tensor_value.asnumpy()
        return CallbackHook._make_numpy_array(tensor_value)
