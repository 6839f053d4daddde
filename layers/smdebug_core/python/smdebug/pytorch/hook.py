"""The hook for PyTorch."""

from __future__ import annotations

from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.pytorch.collection import CollectionManager
from smdebug.saving.framework import later, require
from smdebug.saving.hook import CallbackHook

require("PyTorch", "torch", "torch")

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]


class Hook(CallbackHook):
    """Saves what a PyTorch training tells it: `record`, `record_tensor_value`, `save_scalar`."""

    def __init__(self, out_dir: Any = None, *arguments: Any, **settings: Any):
        super().__init__(
            CollectionManager(),
            DEFAULT_INCLUDE_COLLECTIONS,
            None,
            "Tensor",
            out_dir,
            *arguments,
            **settings,
        )

    register_module = later("PyTorch", "register_module")
    register_hook = later("PyTorch", "register_hook")
    register_loss = later("PyTorch", "register_loss")

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> Any:
        if hasattr(tensor_value, "detach"):
            tensor_value = tensor_value.detach().cpu()
        return CallbackHook._make_numpy_array(tensor_value)
