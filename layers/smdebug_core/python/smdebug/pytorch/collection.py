"""The collections of a PyTorch training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ref

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection_manager import NAMED_LIKE_PARAMETERS
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class _Unnamed(NamedTuple):
    """A module that was added before its model was registered, so that it has no name yet."""

    module: ref[Any]
    kind: str
    inputs: bool
    outputs: bool


class Collection(BaseCollection):
    """A collection that can take the tensors of a module."""

    _unnamed: tuple[_Unnamed, ...] = ()

    @property
    def selects_tensors(self) -> bool:
        """Whether the collection can have members: it has a regex, a name or a module."""
        return super().selects_tensors or bool(self._unnamed)

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Include the inputs and outputs of a module. Its model may be registered later."""
        from torch import nn

        if not isinstance(module, nn.Module):
            raise SMDebugTypeError(f"add_module_tensors takes a torch.nn.Module, not {module!r}")
        self._unnamed += (_Unnamed(ref(module), type(module).__name__, inputs, outputs),)
        self.name_modules()

    def name_modules(self) -> None:
        """Include the tensors of the modules that have a name by now."""
        from smdebug.pytorch.modules.names import name_of  # needs torch

        waiting, self._unnamed = self._unnamed, ()
        for unnamed in waiting:
            name = name_of(unnamed.module())
            if name is None:
                self._unnamed += (unnamed,)
                continue
            if unnamed.inputs:
                self.include(f"{name}_input_")
            if unnamed.outputs:
                self.include(f"{name}_output_")

    def unnamed_modules(self) -> list[str]:
        """Return the class of each module that is not part of a registered model."""
        return [unnamed.kind for unnamed in self._unnamed]


class CollectionManager(BaseCollectionManager):
    """The collections of one run, the default ones from the start."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        **NAMED_LIKE_PARAMETERS,
        CollectionKeys.LOSSES: ("[Ll]oss_(?!input).*output",),
    }
    collection_class = Collection

    def __init__(
        self,
        collections: Mapping[str, BaseCollection] | None = None,
        create_default: bool = True,
    ):
        super().__init__(collections, create_default and collections is None)

    def name_modules(self) -> None:
        """Include the tensors of the modules that have a name by now, in every collection."""
        for collection in self._of_modules():
            collection.name_modules()

    def unnamed_modules(self) -> list[tuple[str, str]]:
        """Return the collection and class of each module that is not part of a registered model."""
        return [
            (collection.name, kind)
            for collection in self._of_modules()
            for kind in collection.unnamed_modules()
        ]

    def _of_modules(self) -> Iterator[Collection]:
        for collection in self.get_collections().values():
            if isinstance(collection, Collection):
                yield collection
