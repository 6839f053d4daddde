"""The collections of a PyTorch training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugNotImplementedError

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that can take the tensors of a module."""

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Include what a registered module is given, and what it gives."""
        name = getattr(module, "_module_name", None)
        if name is None:
            raise SMDebugNotImplementedError(
                "add_module_tensors needs a module that is registered with a hook, which this release "
                "does not do. Include the names under which you record: collection.include('relu_output_')"
            )
        if inputs:
            self.include(f"{name}_input_")
        if outputs:
            self.include(f"{name}_output_")


class CollectionManager(BaseCollectionManager):
    """The collections of one run, the default ones from the start."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
        CollectionKeys.BIASES: ("^(?!gradient).*bias",),
        CollectionKeys.GRADIENTS: ("^gradient",),
        CollectionKeys.LOSSES: ("[Ll]oss_(?!input).*output",),
    }
    collection_class = Collection

    def __init__(
        self,
        collections: Mapping[str, BaseCollection] | None = None,
        create_default: bool = True,
    ):
        super().__init__(collections, create_default and collections is None)
