"""Index files, written entry by entry: `smdebug.files.index` encodes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from smdebug.compatibility.old_file import OldFile, place_of
from smdebug.files.index import IndexMeta, ShapeRecord, TensorEntry, encode_index
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.files.proto.event_pb2 import Event
    from smdebug.trials.live.index_reader import TensorLocation, TensorShape


class IndexWriter(OldFile):
    """Collects the places of tensors, and writes the index file on `close`."""

    def __init__(self, file_path: str):
        self.file_path = file_path
        self._meta: IndexMeta | None = None
        self._tensors: list[TensorEntry] = []
        self._shapes: list[ShapeRecord] = []

    def add_index(self, tensorlocation: TensorLocation, crc32c: int | None = None) -> None:
        """Add the place of a tensor's record."""
        self._belongs(tensorlocation, tensorlocation.event_file_name)
        where = tensorlocation.to_dict()
        self._tensors.append(TensorEntry(where["tensorname"], where["start_idx"], where["length"], crc32c))

    def add_shape(self, tensorshape: TensorShape) -> None:
        """Add the shape of a tensor."""
        self._belongs(tensorshape)
        shape = tensorshape.to_dict()
        self._shapes.append(ShapeRecord(shape["tensorname"], shape["originalname"], tuple(shape["shape"])))

    def close(self) -> None:
        """Write the file once, if it has an entry."""
        if self._meta is not None:
            storage, key = place_of(self.file_path)
            storage.write(key, encode_index(self._meta, self._tensors, self._shapes))
            self._meta = None

    def _belongs(self, entry: TensorLocation | TensorShape, event_file_name: str | None = None) -> None:
        """Give the file the mode and mode step of its first entry."""
        if self._meta is None:
            mode = entry.mode if isinstance(entry.mode, ModeKeys) else ModeKeys[entry.mode]
            self._meta = IndexMeta(mode, entry.mode_step, event_file_name)
        elif self._meta.event_file_name is None:
            self._meta = self._meta._replace(event_file_name=event_file_name)


class Index:
    """The content of an index file."""

    def __init__(
        self,
        meta: dict[str, Any] | None = None,
        tensor_payload: list[dict[str, Any]] | None = None,
        shape_payload: list[dict[str, Any]] | None = None,
    ):
        self.meta = meta
        self.tensor_payload = tensor_payload
        self.shape_payload = shape_payload

    def to_json(self) -> str:
        return json.dumps(vars(self))


class EventWithIndex:
    """An event, with its entry for the index file."""

    def __init__(self, event: Event, tensorname: str, mode: ModeKeys | str | None, mode_step: int | None):
        self.event = event
        self.tensorname = tensorname
        self.mode = ModeKeys.GLOBAL if mode is None else mode
        self.mode_step = mode_step

    def get_mode(self) -> str:
        """Return the mode's name."""
        return self.mode.name if isinstance(self.mode, ModeKeys) else str(self.mode)
