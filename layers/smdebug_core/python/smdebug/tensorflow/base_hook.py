"""The common part of the hooks for TensorFlow and Keras."""

from __future__ import annotations

import math
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.saving.arrays.adapter import Array, FrameworkAdapter
from smdebug.saving.hooks.hook import FrameworkHook
from smdebug.saving.hooks.options import HookOptions
from smdebug.tensorflow.collection import CollectionManager
from smdebug.tensorflow.constants import TF_DEFAULT_SAVED_COLLECTIONS
from smdebug.tensorflow.ranks import rank_and_size


class TensorflowAdapter(FrameworkAdapter):
    """Tensors and variables of TensorFlow, and of Keras on any backend."""

    keeps_colon_index = True

    def to_array(self, value: Any) -> Array:
        if hasattr(value, "detach"):  # Keras on PyTorch
            value = value.detach().cpu()
        elif hasattr(value, "numpy"):
            value = value.numpy()
        return super().to_array(value)

    def number(self, value: Any) -> Any:
        if not hasattr(value, "numpy"):
            return super().number(value)
        if math.prod(value.shape) != 1:
            return None
        # A scalar is converted in the background: on a GPU to do it here would be to wait.
        return value if tuple(value.shape) == () else super().number(self.to_array(value))

    def rank_and_size(self) -> tuple[int, int]:
        return rank_and_size()


class TensorflowBaseHook(FrameworkHook):
    """Names and collections of TensorFlow."""

    adapter = TensorflowAdapter()
    if_no_step = "Pass the hook to the training, such as model.fit(…, callbacks=[hook])"
    if_no_loss = "Compile the model with a loss; in a loop with a tape, call tape.gradient(loss, …)"
    takes_over = True
    saved_by_default = TF_DEFAULT_SAVED_COLLECTIONS

    def set_up(self, options: HookOptions) -> None:
        self.kinds: dict[str, str] = {}  # the collections of tensors whose names do not show them
        super().set_up(options)

    def _prepare_collections_for_tf2(self) -> None:
        """Do nothing, for scripts of the old library: the first step prepares the collections."""

    def make_collections(self) -> CollectionManager:
        return CollectionManager()

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Add a variable to a collection, by its name."""
        collection = self.get_collection(collection_name)
        collection.add_tensor_name(variable if isinstance(variable, str) else name_of(variable))

    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Add variables to the collection of the optimizer's."""
        for variable in optimizer_variables:
            self.add_to_collection(CollectionKeys.OPTIMIZER_VARIABLES, variable)

    def wants_as(self, name: str, collection: str) -> bool:
        """Return whether this tensor, which belongs to that collection, would be saved now."""
        if not self.due:
            return False
        if self.kinds.get(name) != collection:
            self.kinds[name] = collection
            self.assign(name, collection)
        return self.wants(name)

    def record_as(self, name: str, value: Any, collection: str) -> None:
        """Record a tensor that belongs to that collection."""
        if self.wants_as(name, collection):
            self.record(name, value)


def name_of(variable: Any) -> str:
    """Return a variable's name: in Keras its path, in TensorFlow its name in the graph."""
    path = getattr(variable, "path", None)
    return f"{path}:0" if isinstance(path, str) else str(variable.name)
