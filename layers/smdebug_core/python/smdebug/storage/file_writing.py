"""Files that appear whole: written under a temporary name, then renamed."""
# Paths are plain text here: making a `Path` costs more than opening the file.
# ruff: noqa: PTH104, PTH108, PTH116

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.storage.base import Buffer
from smdebug.storage.folder_errors import storage_error

_PIECES_AT_ONCE = 1024  # IOV_MAX of Linux and macOS
# O_NONBLOCK: opening a pipe that was left in the run must not wait for its other end.
CREATE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FileSink:
    """A file under its temporary name."""

    def __init__(self, path: str):
        self._path = path
        self._descriptor, self._temporary = _open_temporary(path)

    def write(self, pieces: Sequence[Buffer]) -> None:
        if self._descriptor < 0:
            raise SMDebugRuntimeError(f"{self._path} was already committed or aborted; create a new object")
        try:
            if len(pieces) <= _PIECES_AT_ONCE:
                _write_all(self._descriptor, pieces)
            else:
                for first in range(0, len(pieces), _PIECES_AT_ONCE):
                    _write_all(self._descriptor, pieces[first : first + _PIECES_AT_ONCE])
        except OSError as error:
            raise storage_error(error, self._path) from error

    def commit(self) -> None:
        if self._descriptor < 0:
            raise SMDebugRuntimeError(f"{self._path} was already committed or aborted; create a new object")
        try:
            # A network file system sends the file, and reports that it is full, when a descriptor is closed.
            # Ours is closed, and so unlocked, only after the rename: until then the name is ours.
            os.close(os.dup(self._descriptor))
            os.rename(self._temporary, self._path)
        except OSError as error:
            self.abort()
            raise storage_error(error, self._path) from error
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # the file is there, whole
            os.close(descriptor)

    def abort(self) -> None:
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # the next writer of this name takes over the rest
            os.unlink(self._temporary)
        with suppress(OSError):
            os.close(descriptor)


def _open_temporary(path: str) -> tuple[int, str]:
    """Open a locked, empty file beside `path`, named with `.tmp` unless another writer has that one.

    A `.tmp` that is not locked was left by a writer that was killed. It is taken over.
    """
    spare = f"{path}.{os.getpid()}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"
    for name in (path + TEMPORARY_SUFFIX, spare):
        try:
            descriptor = os.open(name, CREATE, 0o666)
        except OSError as error:
            if name is not spare and error.errno in (
                errno.ELOOP,
                errno.EISDIR,
                errno.EACCES,
                errno.ENXIO,
            ):
                continue  # a link, a folder, another user's file
            raise
        if name is spare or _holds(descriptor, name):
            return descriptor, name
        os.close(descriptor)
    raise AssertionError("the spare name is always taken")


def _holds(descriptor: int, name: str) -> bool:
    """Lock and empty the file, if it still has that name and no other writer; return True if so."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine, there = os.fstat(descriptor), os.stat(name)
    except OSError:
        return False
    # Its writer may have finished between opening and locking. Then this is the finished file.
    if (mine.st_ino, mine.st_dev, mine.st_nlink) != (there.st_ino, there.st_dev, 1):
        return False
    if not stat.S_ISREG(mine.st_mode):
        return False
    if mine.st_size:
        os.ftruncate(descriptor, 0)
    return True


def _write_all(descriptor: int, pieces: Sequence[Buffer]) -> None:
    if not pieces:
        return
    left = sum([piece.nbytes if type(piece) is memoryview else len(piece) for piece in pieces])
    left -= os.writev(descriptor, pieces)
    if not left:
        return
    # A full disk, a signal or more than 2 GB: continue after what was written.
    rest = [memoryview(piece).cast("B") for piece in pieces if memoryview(piece).nbytes]
    done = sum(piece.nbytes for piece in rest) - left
    while rest:
        while rest and done >= rest[0].nbytes:
            done -= rest.pop(0).nbytes
        if rest:
            rest[0] = rest[0][done:]
            done = os.writev(descriptor, rest)
