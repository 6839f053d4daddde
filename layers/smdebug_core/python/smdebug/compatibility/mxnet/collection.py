"""The collections of an MXNet training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection_manager import NAMED_LIKE_PARAMETERS
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that can take the tensors of a block."""

    def add_block_tensors(self, block: Any, inputs: bool = False, outputs: bool = False) -> None:
        """Include the inputs and outputs of a block."""
        if inputs:
            self.include(f"{block.name}_input_")
        if outputs:
            self.include(f"{block.name}_output_")


class CollectionManager(BaseCollectionManager):
    """The collections of one run, the default ones from the start."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        **NAMED_LIKE_PARAMETERS,
        # Blocks are numbered: softmaxcrossentropyloss0, …loss10.
        CollectionKeys.LOSSES: (r".*loss\d*_(?!input).*output",),
    }
    collection_class = Collection

    def __init__(
        self,
        collections: Mapping[str, BaseCollection] | None = None,
        create_default: bool = True,
    ):
        super().__init__(collections, create_default and collections is None)
