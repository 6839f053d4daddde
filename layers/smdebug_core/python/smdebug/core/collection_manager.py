"""For code written against smdebug: the collections of a run live in `smdebug.config.collection_manager`."""

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.keys import CollectionKeys

__all__ = [
    "Collection",
    "CollectionKeys",
    "CollectionManager",
]
