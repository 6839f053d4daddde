"""What one worker saves of one step: its event file, and then the index file that makes it count."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.files.event_writing import as_saved_array, encode_event
from smdebug.files.framing import Checksum, EncodedRecord
from smdebug.files.index import IndexMeta, ShapeRecord, TensorEntry, encode_index
from smdebug.files.names import event_key, index_key
from smdebug.mode_keys import ModeKeys
from smdebug.storage.base import Buffer, Sink, Storage

WRITTEN_AT_ONCE = 256 << 10
"""Tensors of at least this many bytes are written directly; smaller ones are gathered first."""

GATHERED_UP_TO = 4 << 20

MetaExtras = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


class StepWriter:
    """Writes the tensors of one step of one worker, so that readers see all of them or none.

    The index file is written last: without it the step does not exist. Without a tensor or a shape nothing is
    written at all. `meta_extras` go into the index file's meta; a function is called when that file is made.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        step: int,
        worker: str,
        mode: ModeKeys,
        mode_step: int,
        checksum: Checksum = "constant",
        meta_extras: MetaExtras | None = None,
    ):
        self._storage = storage
        self._step = step
        self._worker = worker
        self._mode = mode
        self._mode_step = mode_step
        self._checksum: Checksum = checksum
        self._meta_extras = meta_extras
        self.is_beside_alone = False
        """Whether what is written beside tensors of other workers is enough for an index file."""
        self._entries: list[TensorEntry] = []
        self._beside: list[TensorEntry] = []
        self._shapes: list[ShapeRecord] = []
        self._gathered: list[Buffer] = []
        self._gathered_from = 0
        self._position = 0
        self._sink: Sink | None = None
        self._events_visible = False
        self._closed = ""

    def __enter__(self) -> StepWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()

    @property
    def event_key(self) -> str:
        """The key of the event file."""
        return event_key(self._step, self._worker)

    @property
    def index_key(self) -> str:
        """The key of the index file."""
        return index_key(self._step, self._worker)

    @property
    def size(self) -> int:
        """The size of the event file so far, in bytes."""
        return self._position

    def write_tensor(
        self,
        name: str,
        array: Any,
        wall_time: float | None = None,
        mode: ModeKeys | None = None,
        mode_step: int | None = None,
        *,
        indexed: bool = True,
        beside: bool = False,
    ) -> None:
        """Save a value. The array may change as soon as this returns.

        The index file lists it unless `indexed` is False; with `beside`, where only our readers look.

        Mode and mode step of a record may differ from the step's own; readers use the step's. If a name comes
        twice, the last value is read.
        """
        if type(array) is not np.ndarray:
            array = as_saved_array(array)
        record = encode_event(
            name,
            array,
            step=self._step,
            wall_time=time.time() if wall_time is None else wall_time,
            mode=mode or self._mode,
            mode_step=self._mode_step if mode_step is None else mode_step,
            checksum=self._checksum,
        )
        start = self._position
        self.write_record(record)
        if indexed:
            # The class itself, called with six arguments, takes three times as long.
            fields = (name, start, record[1], record[2], _name_of(array.dtype), array.shape)
            (self._beside if beside else self._entries).append(_entry(TensorEntry, fields))

    def write_record(self, record: EncodedRecord) -> None:
        """Write an encoded record, such as a summary. The index file does not list it."""
        if self._closed:
            self._refuse()
        pieces, length, _ = record
        self._position += length
        if length >= WRITTEN_AT_ONCE:
            self._send((*self._gathered, *pieces))
        else:
            self._gathered.append(b"".join(pieces))
            if self._position - self._gathered_from >= GATHERED_UP_TO:
                self._send(self._gathered)

    def write_shape(self, name: str, shape: Sequence[int], original_name: str | None = None) -> None:
        """Save the shape. The old library's reader then finds no value of that tensor and worker."""
        if self._closed:
            self._refuse()
        self._shapes.append(ShapeRecord(name, original_name or name, tuple(int(n) for n in shape)))

    def commit(self) -> None:
        """Make the step visible: the event file, then the index file."""
        self.commit_events()
        self.commit_index()

    def commit_events(self) -> None:
        """Make the event file visible, if there is any. Readers ignore it until the index file exists."""
        if self._closed:
            self._refuse()
        if self._gathered:
            self._send(self._gathered)
        self._closed = "written"
        if self._sink is not None:
            sink, self._sink = self._sink, None
            try:
                sink.commit()
            except BaseException:
                self._closed = "given up"
                sink.abort()
                raise
            self._events_visible = True

    def commit_index(self) -> None:
        """Write the index file, after `commit_events`. If it fails it can be tried again."""
        if self._closed != "written":
            raise SMDebugRuntimeError(f"{self.index_key} comes after its event file: commit that first")
        if not (self._entries or self._shapes or (self.is_beside_alone and self._beside)):
            return
        extras = self._meta_extras() if callable(self._meta_extras) else self._meta_extras
        meta = IndexMeta(
            mode=self._mode,
            mode_step=self._mode_step,
            event_file_name=self.event_key if self._events_visible else None,
            extras=extras or {},
        )
        # Without our keys, the file is the old library's to the byte.
        data = encode_index(meta, self._entries, self._shapes, beside=self._beside, checksum=bool(extras))
        self._storage.write(self.index_key, data)

    def abort(self) -> None:
        """Leave no trace of the step, except for an event file that is visible already.

        That is not removed: an index file whose upload seemed to fail may exist after all.
        """
        self._closed = "given up"
        self._gathered = []
        if self._sink is not None:
            sink, self._sink = self._sink, None
            sink.abort()

    def _send(self, pieces: Sequence[Buffer]) -> None:
        try:
            if self._sink is None:
                self._sink = self._storage.create(self.event_key)
            self._sink.write(pieces)
        except BaseException:
            self.abort()  # how much arrived is unknown, so positions are too
            raise
        self._gathered.clear()
        self._gathered_from = self._position

    def _refuse(self) -> None:
        raise SMDebugRuntimeError(
            f"Step {self._step} of {self._worker} is {self._closed}: begin a new StepWriter"
        )


_entry = tuple.__new__
_names: dict[np.dtype[Any], str] = {}


def _name_of(dtype: np.dtype[Any]) -> str:
    """Return the dtype's name from a cache: building it takes numpy as long as a small record takes."""
    name = _names.get(dtype)
    if name is None:
        name = "str" if dtype.kind in "USO" else dtype.newbyteorder("=").name
        if len(_names) < 1000:  # strings of each length are a dtype of their own
            _names[dtype] = name
    return name
