"""What the hooks for TensorFlow and Keras share."""

from __future__ import annotations

from typing import Any

import numpy as np

from smdebug.config.keys import CollectionKeys
from smdebug.saving.hook import CallbackHook, FrameworkHook
from smdebug.tensorflow.collection import CollectionManager
from smdebug.tensorflow.constants import TF_DEFAULT_SAVED_COLLECTIONS
from smdebug.tensorflow.ranks import rank_and_size


class TensorflowBaseHook(FrameworkHook):
    """Names, collections and values of TensorFlow."""

    _keeps_colon_index = True
    _takes_over = True
    _saved_by_default = TF_DEFAULT_SAVED_COLLECTIONS

    def _make_ready(self) -> None:
        self._kinds: dict[str, str] = {}  # the collection of a tensor whose name does not tell it

    def _make_collections(self) -> CollectionManager:
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
        """Would this tensor, which belongs to that collection, be saved now?"""
        if not self._due or self._plan is None:
            return False
        if self._kinds.get(name) != collection:
            self._kinds[name] = collection
            self._plan.assign(name, collection)
        return self.wants(name)

    def record_as(self, name: str, value: Any, collection: str) -> None:
        """Offer a tensor that belongs to that collection."""
        if self.wants_as(name, collection):
            self.record(name, value)

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> np.ndarray[Any, Any]:
        if hasattr(tensor_value, "detach"):  # Keras on PyTorch
            tensor_value = tensor_value.detach().cpu()
        elif hasattr(tensor_value, "numpy"):
            tensor_value = tensor_value.numpy()
        return CallbackHook._make_numpy_array(tensor_value)

    def _rank_and_size(self) -> tuple[int, int]:
        return rank_and_size()


def name_of(variable: Any) -> str:
    """A variable's name: of Keras its path, of TensorFlow what it is called in the graph."""
    path = getattr(variable, "path", None)
    return f"{path}:0" if isinstance(path, str) else str(variable.name)
