"""The collections of a TensorFlow training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugTypeError
from smdebug.mode_keys import ModeKeys

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that can take tensors, variables and layers."""

    def add(self, arg: Any) -> None:
        """Add a tensor, a variable, an operation with outputs, or a list of them."""
        if isinstance(arg, list | tuple | set):
            for member in arg:
                self.add(member)
        elif isinstance(name := getattr(arg, "name", None), str):
            self.add_tensor_name(name)
        else:
            raise SMDebugTypeError(f"A tensor, a variable or a list was expected, not {arg!r}")

    def add_for_mode(self, arg: Any, mode: ModeKeys | None = None) -> None:
        """Add a tensor for a mode; names are the same in every mode."""
        self.add(arg)

    def add_keras_layer(self, layer: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Include the inputs and outputs of a layer."""
        if inputs:
            self.include(f"^{layer.name}/inputs")
        if outputs:
            self.include(f"^{layer.name}/outputs")

    def get_tensors(self, mode: ModeKeys | None = None, graph: Any = None) -> Any:
        raise SMDebugNotImplementedError(
            "get_tensors: this release does not look into graphs. "
            "`collection.tensor_names` has the names of what was saved."
        )


class CollectionManager(BaseCollectionManager):
    """The collections of one run, the default ones from the start."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.WEIGHTS: ("^weights/.*/((?!bias).)*$", "/weights/.*/((?!bias).)*$"),
        CollectionKeys.BIASES: ("^(?!gradient).*bias",),
        CollectionKeys.GRADIENTS: ("^gradient",),
        CollectionKeys.LOSSES: ("^(?!gradient).*loss.*",),
        CollectionKeys.METRICS: (),
        CollectionKeys.SM_METRICS: (),
        CollectionKeys.INPUTS: (),
        CollectionKeys.OUTPUTS: (),
        CollectionKeys.LAYERS: (),
        CollectionKeys.OPTIMIZER_VARIABLES: (),
    }
    collection_class = Collection

    def __init__(
        self,
        collections: Mapping[str, BaseCollection] | None = None,
        create_default: bool = True,
    ):
        super().__init__(collections, create_default and collections is None)
