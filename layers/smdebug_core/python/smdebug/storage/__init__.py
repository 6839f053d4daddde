"""The places where a run can be stored: a bucket, a local folder, memory."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage.base import Buffer, ByteSpan, Sink, Storage

if TYPE_CHECKING:
    from smdebug.storage.folder import FolderStorage
    from smdebug.storage.memory import MemoryStorage
    from smdebug.storage.s3 import S3Storage

__all__ = ["Buffer", "ByteSpan", "Sink", "Storage", "open_storage"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def open_storage(path: str | os.PathLike[str] | Storage) -> Storage:
    """The place behind a path: `s3://bucket/prefix`, a local folder (`~` is the home), `memory://name`.

    Nothing is checked or created yet: a folder is created when something is first written to it.
    """
    if not isinstance(path, str | os.PathLike):
        if isinstance(path, Storage):
            return path
        raise SMDebugTypeError(
            f"A run is opened by its path or a Storage, not by {type(path).__name__}: {path!r}"
        )
    text = os.fspath(path)
    match = _SCHEME.match(text) if isinstance(path, str) else None
    return _opened(match[1], match[2], text) if match else _folder(text)


def _opened(scheme: str, rest: str, path: str) -> S3Storage | MemoryStorage:
    if scheme == "s3":
        from smdebug.storage.s3 import S3Storage

        return S3Storage.at(path)
    if scheme == "memory" and rest:
        from smdebug.storage.memory import MemoryStorage

        return MemoryStorage.named(rest)
    raise SMDebugValueError(
        f"{path!r} is not a place where runs can be stored: use s3://bucket/prefix (in lower case), "
        "a local path, or memory://name"
    )


def _folder(path: str) -> FolderStorage:
    from smdebug.storage.folder import FolderStorage

    return FolderStorage(path)
