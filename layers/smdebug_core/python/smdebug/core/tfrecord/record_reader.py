"""For code written against smdebug that reads files of records itself."""

from __future__ import annotations

import os

from smdebug.core.tfrecord._place import place_of
from smdebug.core.tfrecord.record_writer import CHECKSUM_MAGIC_BYTES, crc32c, masked_crc32c, u32
from smdebug.core.tfrecord.tensor_reader import TensorReader
from smdebug.exceptions import SMDebugValueError, StorageError

__all__ = ["CHECKSUM_MAGIC_BYTES", "RecordReader", "crc32c", "masked_crc32c", "u32"]


class RecordReader(TensorReader):
    """Reads the records of one file or object, one after the other."""

    def __init__(self, path: str | os.PathLike[str]):
        storage, key = place_of(path)
        try:
            data = storage.view(key)
        except StorageError as error:
            raise SMDebugValueError(f"failed to open {os.fspath(path)}: {error}") from error
        super().__init__(data, os.fspath(path))

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: the constructor read the file."""
