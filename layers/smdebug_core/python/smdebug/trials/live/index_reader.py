"""The index files of a run under the interface of the old library's readers, for code written against it.

Trials do not use it, since it creates an object for every tensor, step and worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError
from smdebug.files.event_reading import read_value
from smdebug.files.index import IndexFile
from smdebug.files.names import EVENTS_FOLDER, INDEX_FOLDER
from smdebug.mode_keys import ModeKeys
from smdebug.storage import ByteSpan, Storage, open_storage
from smdebug.trials.arguments import StepRange
from smdebug.trials.live.listing import Damaged, IndexListing
from smdebug.trials.stored.worker_steps import ArrivedIndex


class TensorLocation:
    """Where in an event file the record of one tensor is."""

    def __init__(
        self,
        tname: str,
        mode: ModeKeys,
        mode_step: int,
        event_file_name: str | None,
        start_idx: int,
        length: int,
        worker: str,
    ):
        self.tensorname = tname
        self.mode = mode
        self.mode_step = int(mode_step)
        self.event_file_name = event_file_name
        self.start_idx = start_idx
        self.length = length
        self.worker = worker

    def to_dict(self) -> dict[str, Any]:
        """Return its entry in an index file."""
        return {
            "tensorname": self.tensorname,
            "start_idx": self.start_idx,
            "length": self.length,
        }


class TensorShape:
    """The shape of a tensor at one step."""

    def __init__(
        self,
        name: str,
        mode: ModeKeys,
        mode_step: int,
        shape: tuple[int, ...],
        original_name: str | None = None,
    ):
        self.name = name
        self.original_name = name if original_name is None else original_name
        self.mode = mode
        self.mode_step = mode_step
        self.shape = tuple(shape)

    def to_dict(self) -> dict[str, Any]:
        """Return its entry in an index file."""
        return {
            "tensorname": self.name,
            "originalname": self.original_name,
            "shape": self.shape,
        }


TensorData = dict[str, dict[int, dict[str, dict[str, TensorLocation | TensorShape]]]]


class IndexReader:
    """Reads the index files below `path`. Returned keys begin with the path."""

    def __init__(self, path: str | os.PathLike[str] | Storage):
        self._storage = open_storage(path)
        self.path = path if isinstance(path, str) else self._storage.location

    def list_index_files(
        self, start_after_key: str | None = None
    ) -> list[str] | tuple[list[str], str | None]:
        """Return the index files that sort behind `start_after_key`, in order."""
        return self._index_files(start_after_key)

    def list_event_files(self, start_after_key: str | None = None) -> list[str]:
        """Return the event files that sort behind `start_after_key`, in order."""
        return list(map(self._full, self._storage.list(EVENTS_FOLDER, self._key(start_after_key))))

    def read_index_files(
        self, start_after_key: str | None = None, range_steps: StepRange | None = None
    ) -> tuple[list[bytes], list[int], str | None, list[str]]:
        """Return contents, steps, the last key, and workers of the index files behind that key."""
        contents, steps, workers, last = [], [], [], start_after_key
        for arrival in self._arrivals(start_after_key, range_steps):
            contents.append(self._storage.read(arrival.key))
            steps.append(arrival.step)
            workers.append(arrival.worker)
            last = self._full(arrival.key)
        return contents, steps, last, workers

    def load_tensor_data_from_index_files(
        self, start_after_key: str | None = None, range_steps: StepRange | None = None
    ) -> tuple[TensorData, str | None]:
        """Return `{name: {step: {worker: {"tensor_location" or "tensor_shape": …}}}}` and the last key."""
        data: TensorData = {}
        last = start_after_key
        for arrival in self._arrivals(start_after_key, range_steps):
            last = self._full(arrival.key)
            for name, kind, known in _entries(arrival.file, arrival.worker):
                steps = data.setdefault(name, {})
                steps.setdefault(arrival.step, {}).setdefault(arrival.worker, {})[kind] = known
        return data, last

    def fetch_tensor_value(self, tensor_location: TensorLocation) -> NDArray[Any]:
        """Return the value at that location."""
        if tensor_location.event_file_name is None:
            raise SMDebugTypeError("A location without an event file has no value")
        file = self._key(tensor_location.event_file_name)
        start, length = tensor_location.start_idx, tensor_location.length
        record = self._storage.view(file or "", ByteSpan(start, start + length))
        return read_value(
            record, file=file or "", name=tensor_location.tensorname, step=tensor_location.mode_step
        )

    def _index_files(self, start_after_key: str | None) -> list[str]:
        return list(map(self._full, self._storage.list(INDEX_FOLDER, self._key(start_after_key))))

    def _arrivals(self, after: str | None, steps: StepRange | None) -> Iterator[ArrivedIndex]:
        for item in IndexListing(self._storage, steps).news(self._key(after)):
            if isinstance(item, Damaged):
                raise item.error
            yield item

    def _full(self, key: str) -> str:
        return f"{self._storage.location}/{key}"

    def _key(self, path: str | None) -> str | None:
        if path is None:
            return None
        return path.removeprefix(self._storage.location).lstrip("/")


class LocalIndexReader(IndexReader):
    """An `IndexReader` of a local folder."""

    def list_index_files(self, start_after_key: str | None = None) -> list[str]:
        """Return the index files that sort behind `start_after_key`, in order."""
        return self._index_files(start_after_key)


class S3IndexReader(IndexReader):
    """An `IndexReader` of `s3://bucket/prefix`."""

    def list_index_files(self, start_after_key: str | None = None) -> tuple[list[str], str | None]:
        """Return the index files that sort behind `start_after_key`, and the last key listed."""
        files = self._index_files(start_after_key)
        return files, files[-1] if files else start_after_key


class ReadIndexFilesCache:
    """The index files that were read and can be listed again."""

    def __init__(self) -> None:
        self.lookup_set: set[str] = set()
        self.cache_limit = 1000

    def has_not_read(self, index_file: str) -> bool:
        return index_file not in self.lookup_set

    def add(self, index_file: str, start_after_key: str | None) -> None:
        """Remember a file; above the limit, files that sort before the key are forgotten."""
        if len(self.lookup_set) >= self.cache_limit and start_after_key is not None:
            self.lookup_set = {file for file in self.lookup_set if file > start_after_key}
        self.lookup_set.add(index_file)


def _entries(file: IndexFile, worker: str) -> Iterator[tuple[str, str, TensorLocation | TensorShape]]:
    mode, mode_step, event_file, _ = file.meta
    for name, start, length in zip(file.names, file.starts, file.lengths, strict=True):
        place = TensorLocation(name, mode, mode_step, event_file, start, length, worker)
        yield name, "tensor_location", place
    for name, original_name, shape in file.shape_records:
        yield name, "tensor_shape", TensorShape(name, mode, mode_step, shape, original_name)
