"""What the hooks for TensorFlow share."""

from __future__ import annotations

from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.saving.framework import later, require
from smdebug.saving.hook import CallbackHook
from smdebug.tensorflow.collection import CollectionManager
from smdebug.tensorflow.constants import TF_DEFAULT_SAVED_COLLECTIONS

require("TensorFlow", "tensorflow", "tensorflow")


class TensorflowBaseHook(CallbackHook):
    """Saves what a TensorFlow training tells it: `record`, `save_tensor`, `save_scalar`."""

    _keeps_colon_index = True

    def __init__(self, out_dir: Any = None, *arguments: Any, **settings: Any):
        super().__init__(
            CollectionManager(),
            TF_DEFAULT_SAVED_COLLECTIONS,
            None,
            None,
            out_dir,
            *arguments,
            **settings,
        )

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Add a variable to a collection, by its name."""
        collection = self.get_collection(collection_name)
        collection.add_tensor_name(variable if isinstance(variable, str) else variable.name)

    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Add variables to the collection of the optimizer's."""
        for variable in optimizer_variables:
            self.add_to_collection(CollectionKeys.OPTIMIZER_VARIABLES, variable)

    wrap_optimizer = later("TensorFlow", "wrap_optimizer")
    set_gradients = later("TensorFlow", "set_gradients")
