"""The collections of a PyTorch training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugValueError

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that can take the tensors of a module."""

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Include the inputs and outputs of a registered module."""
        from smdebug.pytorch.names import name_of  # needs torch

        name = name_of(module)
        if name is None:
            raise SMDebugValueError(
                "add_module_tensors needs a module that is part of a registered one: call "
                "hook.register_module(model) first, or include the names: "
                "collection.include('relu_output_')"
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
