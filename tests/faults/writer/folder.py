"""A folder with faults: what `os` does for the storage of folders, with the system's own errors."""
# These stand in for functions of `os`, which take paths as text.
# ruff: noqa: PTH103, PTH104, PTH108, PTH116, PTH118

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest import mock

from smdebug.storage import file_writing, folder
from smdebug.storage.folder import FolderStorage
from tests.faults.writer.calls import Calls
from tests.faults.writer.world import Killed, Process, here

_ERRORS = {
    "full": errno.ENOSPC,
    "quota": errno.EDQUOT,
    "io": errno.EIO,
    "readonly": errno.EROFS,
    "files": errno.EMFILE,
}
_SECONDS = 0.0005
"""How long a call takes."""
#: What each fault concerns; of other calls it changes nothing.
_CHANGES = frozenset(("open", "writev", "rename", "unlink", "makedirs", "close", "ftruncate"))
_FAILS = {
    "full": frozenset(("create", "writev", "makedirs")),
    "quota": frozenset(("create", "writev", "makedirs")),
    "readonly": frozenset(("create", "rename", "unlink", "makedirs", "open")),
    "files": frozenset(("create", "open", "scandir")),
    "io": frozenset(("create", "open", "writev", "rename", "unlink", "makedirs", "pread", "scandir", "stat")),
}


class _OpenFile:
    """An open file of a process, by any of its descriptors."""

    def __init__(self, path: str, process: Process):
        self.path = path
        self.process = process
        self.is_dirty = False


class FaultyOs:
    """`os` for a simulated process, below one folder."""

    def __init__(self, root: str, calls: Calls):
        self._root = root.rstrip("/") + "/"
        self._calls = calls
        self._files: dict[int, _OpenFile] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        self._call("create" if writes else "open", path)
        descriptor = os.open(path, flags, mode)
        self._hold(descriptor, _OpenFile(path, here().process))
        self._calls.done()
        return descriptor

    def dup(self, descriptor: int) -> int:
        copy = os.dup(descriptor)
        self._hold(copy, self._files[descriptor])
        return copy

    def writev(self, descriptor: int, pieces: Sequence[Any]) -> int:
        file = self._files[descriptor]
        fault = self._call("writev", file.path, within=lambda: _write_half(descriptor, pieces))
        file.is_dirty = True
        if fault == "short":
            return _write_half(descriptor, pieces)
        written = os.writev(descriptor, pieces)
        self._calls.done()
        return written

    def fsync(self, descriptor: int) -> None:
        self._flush(descriptor, "fsync")

    def close(self, descriptor: int) -> None:
        if descriptor not in self._files:
            os.close(descriptor)
            return
        try:
            self._flush(descriptor, "close")
        except Killed:
            raise
        except OSError:
            self._drop(descriptor)
            raise
        self._drop(descriptor)

    def rename(self, source: str, target: str) -> None:
        fault = self._call("rename", target)
        os.rename(source, target)
        self._calls.done("rename", target.removeprefix(self._root))
        if fault == "unanswered":
            _fail(errno.EIO, target)

    def unlink(self, path: str) -> None:
        self._call("unlink", path)
        os.unlink(path)
        is_part = path.endswith(".tmp")
        self._calls.done("" if is_part else "unlink", path.removeprefix(self._root))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._call("makedirs", path + "/")
        os.makedirs(path, exist_ok=exist_ok)
        self._calls.done()

    def pread(self, descriptor: int, size: int, offset: int) -> bytes:
        self._call("pread", self._files[descriptor].path)
        return os.pread(descriptor, size, offset)

    def scandir(self, path: str) -> Any:
        self._call("scandir", path)
        return os.scandir(path)

    def stat(self, path: Any, **more: Any) -> os.stat_result:
        self._calls.meet_the_dead()
        return os.stat(path, **more)

    # Faults

    def _call(self, what: str, path: str, within: Callable[[], object] | None = None) -> str:
        """Take part in the schedule; raise what the fault is, or return its name."""
        key = path.removeprefix(self._root).split(".tmp")[0]
        fault = self._calls.begin(what, key, _SECONDS, within)
        if fault == "hang":
            self._calls.hang()
            if self._calls.chance.random() < 0.5:
                _fail(errno.ESTALE, path)
        elif fault in _FAILS and what in _FAILS[fault]:
            if what == "writev" and within is not None and self._calls.chance.random() < 0.5:
                within()
            _fail(_ERRORS[fault], path)
        return fault

    def _flush(self, descriptor: int, what: str) -> None:
        """Send what was written to the server, which may refuse it."""
        file = self._files[descriptor]
        if not file.is_dirty:
            self._calls.meet_the_dead()
            return
        fault = self._call(what, file.path)
        file.is_dirty = False
        if fault == "late":
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            _fail(errno.ENOSPC, file.path)

    def _hold(self, descriptor: int, file: _OpenFile) -> None:
        self._files[descriptor] = file
        if file.process.is_gone:
            self._drop(descriptor)
            raise Killed
        file.process.when_gone.append(lambda: self._drop_if(descriptor, file))

    def _drop_if(self, descriptor: int, file: _OpenFile) -> None:
        if self._files.get(descriptor) is file:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        self._files.pop(descriptor, None)
        os.close(descriptor)


def _write_half(descriptor: int, pieces: Sequence[Any]) -> int:
    whole = b"".join(bytes(piece) for piece in pieces)
    half = whole[: max(1, len(whole) // 2)]
    return os.write(descriptor, half) if half else 0


def _fail(code: int, path: str) -> NoReturn:
    raise OSError(code, os.strerror(code), path)


class FaultyFolder:
    """The folder of a run."""

    def __init__(self, path: str):
        self.path = path

    def storage(self, process: Process | None = None) -> FolderStorage:
        return FolderStorage(self.path)

    @contextmanager
    def at_work(self, calls: Calls) -> Iterator[None]:
        """Have the library's calls of the system go through the schedule."""
        faulty = FaultyOs(self.path, calls)
        with mock.patch.object(file_writing, "os", faulty), mock.patch.object(folder, "os", faulty):
            yield

    def left_over(self) -> list[str]:
        """Return the files that are no object of the run."""
        return sorted(
            os.path.relpath(os.path.join(where, name), self.path)
            for where, _, names in os.walk(self.path)
            for name in names
            if name.endswith(".tmp")
        )
