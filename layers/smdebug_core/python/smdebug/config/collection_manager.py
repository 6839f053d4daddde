"""All collections of a run, and their file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from smdebug.config.collection import Collection
from smdebug.config.keys import CollectionKeys
from smdebug.config.parsing import json_object
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError

NUM_WORKERS_KEY = "num_workers"
COLLECTIONS_KEY = "collections"
META_KEY = "_meta"

#: The collections of frameworks that name parameters `…weight` and `…bias`, and gradients `gradient…`.
NAMED_LIKE_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
    CollectionKeys.BIASES: ("^(?!gradient).*bias",),
    CollectionKeys.GRADIENTS: ("^gradient",),
}


class CollectionManager:
    """The collections of one run, by name."""

    #: The collections that exist from the start with `create_default=True`, and their regexes.
    default_collections: Mapping[str, tuple[str, ...]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
    }
    collection_class: type[Collection] = Collection

    def __init__(
        self,
        collections: Mapping[str, Collection] | None = None,
        create_default: bool = False,
    ):
        self.collections: dict[str, Collection] = dict(collections or {})
        self._meta: dict[str, Any] = {NUM_WORKERS_KEY: 1}
        if create_default:
            for name, regexes in self.default_collections.items():
                if name not in self.collections:
                    self.add(self.collection_class(name, include_regex=regexes))

    def create_collection(self, name: str, cls: Callable[[str], Collection] | None = None) -> Collection:
        self.collections[name] = (cls or self.collection_class)(name)
        return self.collections[name]

    def get(self, name: str, create: bool = True) -> Collection:
        """Return the collection of that name; create it if it is missing and `create` is true."""
        if name not in self.collections:
            if not create:
                raise SMDebugError(f"Collection {name} has not been created.")
            self.create_collection(name)
        return self.collections[name]

    def add(self, arg: str | Collection) -> None:
        """Create a collection by name, or replace the one with the name of this one."""
        if isinstance(arg, str):
            self.create_collection(arg)
        elif isinstance(arg, Collection):
            self.collections[arg.name] = arg
        else:
            raise SMDebugTypeError(f"A collection, or the name of one, was expected, not {arg!r}")

    def get_collections(self) -> dict[str, Collection]:
        return self.collections

    def get_num_workers(self) -> int:
        return int(self._meta.get(NUM_WORKERS_KEY, 1))

    def set_num_workers(self, num_workers: int) -> None:
        self._meta[NUM_WORKERS_KEY] = num_workers

    @property
    def meta(self) -> Mapping[str, Any]:
        """The facts about the run in the collections file: `num_workers`, `run_id`, …"""
        return self._meta

    def update_meta(self, meta: Mapping[str, Any]) -> None:
        self._meta.update(meta)

    def to_json_dict(self) -> dict[str, Any]:
        return {
            COLLECTIONS_KEY: {
                name: collection.to_json_dict() for name, collection in self.collections.items()
            },
            META_KEY: dict(self._meta),
        }

    def to_json(self) -> str:
        """Return the content of a collections file."""
        return json.dumps(self.to_json_dict())

    def export(self, out_dir: str, filename: str) -> None:
        """Write the collections file of that name into the run at `out_dir`."""
        from smdebug.files.names import COLLECTIONS_FOLDER
        from smdebug.storage import open_storage

        open_storage(out_dir).write(COLLECTIONS_FOLDER + filename, self.to_json().encode())

    @classmethod
    def load(cls, filename: str, collection_class: type[Collection] | None = None) -> CollectionManager:
        """Return the collections in that file, which may be on S3."""
        from smdebug.storage import open_storage

        folder, _, name = str(filename).rpartition("/")
        data = open_storage(folder or ".").read(name)
        return cls.from_dict(json_object(data, str(filename)), collection_class)

    @classmethod
    def load_from_string(
        cls, s: str | bytes | None, collection_class: type[Collection] | None = None
    ) -> CollectionManager | None:
        """Return the collections in the content of a collections file; None for None."""
        return s if s is None else cls.from_dict(json_object(s, "The string"), collection_class)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], collection_class: type[Collection] | None = None
    ) -> CollectionManager:
        """Return the collections in a parsed collections file."""
        _allow_only(data, (COLLECTIONS_KEY, META_KEY))
        described, meta = data.get(COLLECTIONS_KEY, {}), data.get(META_KEY, {})
        if not isinstance(described, Mapping) or not isinstance(meta, Mapping):
            raise SMDebugValueError("A collections file holds two objects: collections and _meta")
        of = collection_class or cls.collection_class
        manager = cls({name: of.from_dict(value) for name, value in described.items()})
        manager.update_meta(meta)
        return manager

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CollectionManager):
            return NotImplemented
        return type(self) is type(other) and self.collections == other.collections

    __hash__ = None  # type: ignore[assignment]  # it is mutable


def _allow_only(data: Mapping[str, Any], keys: Iterable[str]) -> None:
    if unexpected := [key for key in data if key not in keys]:
        raise SMDebugValueError(
            f"A collections file has only the keys collections and _meta, not {unexpected}"
        )
