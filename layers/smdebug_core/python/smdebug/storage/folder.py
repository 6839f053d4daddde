"""A run in a local folder.

An object is written under its name and `.tmp`, then renamed: a reader sees all of it or nothing, also
after the writer was killed. (After a power failure the newest files may be empty: nothing is fsynced.)

The folder itself may be a symbolic link. Inside it, a link is followed as long as it stays inside; one
that leads outside is refused, and so is anything that is no regular file: nothing is read or written
outside the run. Folders behind links are not listed.
"""
# Paths are plain text here: making a `Path` costs more than opening the file.
# ruff: noqa: PTH103, PTH104, PTH108, PTH112, PTH113, PTH115, PTH116, PTH120

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from smdebug.exceptions import (
    AccessDenied,
    ObjectMissing,
    SMDebugRuntimeError,
    SMDebugValueError,
    StorageError,
    StorageUnavailable,
)
from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.storage.base import Buffer, ByteSpan, Sink
from smdebug.storage.keys import (
    checked_key,
    checked_prefix,
    checked_span,
    checked_start,
    clipped,
    is_key,
)

WORTH_MAPPING = 64 << 10
"""From this many bytes on, a view maps the file instead of copying it."""

_TICKS = 0.05  # seconds: several ticks of any system's clock
_READ_AFTER = 1.0  # seconds after which a folder is read again, whatever its time says
_WORTH_REMEMBERING = 1000  # entries; what is asked for again and again are the few new ones
_FOLDERS_REMEMBERED = 8
_PIECES_AT_ONCE = 1024  # IOV_MAX of Linux and macOS
# O_NONBLOCK: opening a pipe that somebody left in the run must not wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_ADVICE: dict[int | None, tuple[type[StorageError], str]] = {
    errno.EACCES: (
        AccessDenied,
        "the permissions of the file or a folder above it do not allow it",
    ),
    errno.EPERM: (AccessDenied, "the system does not allow it; check owner and attributes"),
    errno.EROFS: (AccessDenied, "the file system is read-only; choose a path that can be written"),
    errno.ENOSPC: (StorageUnavailable, "the disk is full; free some space, or save elsewhere"),
    errno.EDQUOT: (
        StorageUnavailable,
        "the disk quota is used up; free some space, or save elsewhere",
    ),
    errno.EIO: (StorageUnavailable, "the disk reports an I/O error; check it, or save elsewhere"),
    errno.ESTALE: (StorageUnavailable, "the network file system lost the file; check its server"),
    errno.ETIMEDOUT: (
        StorageUnavailable,
        "the network file system does not answer; check its server",
    ),
    errno.EMFILE: (StorageUnavailable, "too many open files in this process; raise `ulimit -n`"),
    errno.ENFILE: (StorageUnavailable, "too many open files on this machine"),
    errno.ENOTDIR: (
        StorageError,
        "a part of the path is a file where a folder is needed; move it away",
    ),
    errno.EEXIST: (
        StorageError,
        "a part of the path is a file where a folder is needed; move it away",
    ),
    errno.EISDIR: (StorageError, "there is a folder of that name; move it away"),
    errno.ENAMETOOLONG: (StorageError, "the name is too long for this file system"),
    errno.ELOOP: (StorageError, "symbolic links lead in a circle; replace them by real files"),
    errno.ENOENT: (StorageUnavailable, "the folder has vanished; was it removed while in use?"),
}


class FolderStorage:
    """Objects as files below one folder, which is made when the first of them is written."""

    def __init__(self, folder: str | os.PathLike[str]):
        path = os.fspath(folder)
        if not path or "\0" in path:
            raise SMDebugValueError(f"{path!r} is not the path of a folder")
        self._root = str(Path(path).expanduser().absolute())
        self._beginning = self._root.rstrip("/") + "/"
        self._real_beginning = ""
        self._looks = _Looks()

    def __repr__(self) -> str:
        return f"FolderStorage({self._root!r})"

    @property
    def location(self) -> str:
        return self._root

    @property
    def concurrency(self) -> int:
        return 1

    # Reading

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        path = self._path(key)
        checked_span(span)
        try:
            descriptor, size = self._open(path)
            try:
                start, stop = clipped(span, size)
                data = os.pread(descriptor, stop - start, start)
                while len(data) < stop - start:
                    more = os.pread(descriptor, stop - start - len(data), start + len(data))
                    if not more:
                        break  # somebody made the file shorter: what is there is what there is
                    data += more
                return data
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _reading(error, path) from error

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        path = self._path(key)
        checked_span(span)
        try:
            descriptor, size = self._open(path)
            try:
                # Never past the end that the file has now: touching such a page would kill the process.
                start, stop = clipped(span, size)
                if stop - start >= WORTH_MAPPING:
                    return _mapped(descriptor, start, stop)
                copy = bytearray(stop - start)
                return memoryview(copy)[: os.preadv(descriptor, [copy], start)]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _reading(error, path) from error

    def size(self, key: str) -> int:
        path = self._path(key)
        try:
            descriptor, size = self._open(path)
        except OSError as error:
            raise _reading(error, path) from error
        os.close(descriptor)
        return size

    def exists(self, key: str) -> bool:
        path = self._path(key)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return False
            self._refuse_outside(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _reading(error, path) from error
        return True

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        checked_prefix(prefix)
        checked_start(start_after)
        folder, slash, _ = prefix.rpartition("/")
        return self._keys_in(folder + slash, prefix, start_after or "")

    # Writing

    def write(self, key: str, data: Buffer) -> None:
        sink = self.create(key)
        try:
            sink.write((data,))
            sink.commit()
        except BaseException:
            sink.abort()
            raise

    def create(self, key: str) -> Sink:
        path = self._path(key)
        try:
            self._make_folder_of(path)
            return _FileSink(path)
        except OSError as error:
            raise _typed(error, path) from error

    def claim(self, key: str) -> bool:
        path = self._path(key)
        try:
            self._make_folder_of(path)
            try:
                os.close(os.open(path, _CREATE | os.O_EXCL, 0o666))
            except FileExistsError:
                return False
        except OSError as error:
            raise _typed(error, path) from error
        return True

    def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            self._refuse_outside(os.path.dirname(path))  # the link itself may be removed
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise _typed(error, path) from error

    # Inside, and nowhere else

    def _path(self, key: str) -> str:
        return self._beginning + checked_key(key)

    def _open(self, path: str) -> tuple[int, int]:
        """A descriptor of the regular file at `path`, and its size."""
        descriptor = os.open(path, _READ)
        try:
            self._refuse_outside(path, descriptor)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                return descriptor, status.st_size
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a folder", path)
            raise StorageError(path, "it is neither a file nor a folder, so it is not read")
        except BaseException:
            os.close(descriptor)
            raise

    def _refuse_outside(self, path: str, descriptor: int | None = None) -> None:
        real = _real_path(path, descriptor)
        if (real + "/").startswith(self._real_beginning or "\0"):
            return
        # First use; or the folder was moved, or its link leads elsewhere now.
        self._real_beginning = _real_path(self._root).rstrip("/") + "/"
        if not (real + "/").startswith(self._real_beginning):
            raise StorageError(
                path,
                f"it leads outside the run, to {real}. Nothing there is read or written: "
                "copy the files into the run, or open the run at its real place.",
            )

    def _make_folder_of(self, path: str) -> None:
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            if os.path.isdir(self._root):
                self._refuse_outside(_nearest_existing(folder))
            os.makedirs(folder, exist_ok=True)
        self._refuse_outside(folder)

    def _keys_in(self, folder: str, prefix: str, start_after: str) -> Iterator[str]:
        path = self._beginning + folder
        try:
            stamp = _stamp(path)
            entries = self._looks.unchanged(path, stamp, start_after)
            if entries is None:
                entries = self._entries(path, folder, start_after)
                self._looks.note(path, stamp, start_after, entries)
        except FileNotFoundError:
            return
        except NotADirectoryError as error:
            if os.path.isfile(self._root):
                raise _typed(error, self._root) from error
            return
        except OSError as error:
            raise _reading(error, path) from error
        # A folder sorts by its name and `/`, as its keys do.
        for key in sorted(entries):
            # What sorts before `start_after` without being its beginning holds nothing that comes after.
            if key <= start_after and not (key[-1] == "/" and start_after.startswith(key)):
                continue
            if key[-1] != "/":
                if key.startswith(prefix) and is_key(key):
                    yield key
            elif key.startswith(prefix) or prefix.startswith(key):
                yield from self._keys_in(key, prefix, start_after)

    def _entries(self, path: str, folder: str, start_after: str) -> Sequence[str]:
        """What is in a folder, as keys; most of what sorts before `start_after` is left out."""
        entries = []
        after = start_after.removeprefix(folder) if start_after.startswith(folder) else ""
        with os.scandir(path) as found:
            for entry in found:
                name = entry.name
                if name < after and not after.startswith(name):
                    continue  # the bulk, of which nothing more is asked
                key = folder + name
                if entry.is_dir(follow_symlinks=False):
                    entries.append(key + "/")
                elif entry.is_symlink() and entry.is_dir():
                    self._refuse_outside(entry.path)
                else:
                    entries.append(key)
        return entries


class _Look(NamedTuple):
    stamp: _Stamp
    first_seen: float
    """When the folder had that stamp first, as far as was looked."""
    read: float
    """When it was read."""
    is_final: bool
    """Was the stamp so old already that whatever is added later gives the folder another one?"""
    start_after: str
    entries: Sequence[str]


class _Looks:
    """What the folders that were read last held: while its time of change is the same, nothing is new.

    That is only relied on where it was seen to hold, and not for long: not every file system keeps that
    time, or keeps it in less than seconds. Two changes within a tick of the clock may bear the same time.
    """

    def __init__(self) -> None:
        self._of: dict[str, _Look] = {}
        self._stamps_tell: bool | None = None

    def unchanged(self, path: str, stamp: _Stamp, start_after: str) -> Sequence[str] | None:
        """What the folder holds behind `start_after`, if that is known without reading it."""
        last = self._of.get(path)
        if not self._stamps_tell or last is None or last.stamp != stamp or not last.is_final:
            return None
        if start_after < last.start_after or time.monotonic() - last.read > _READ_AFTER:
            return None
        return last.entries

    def note(self, path: str, stamp: _Stamp, start_after: str, entries: Sequence[str]) -> None:
        """The folder, which had that stamp before it was read, held these."""
        known = self._of.copy()
        last, now = known.pop(path, None), time.monotonic()
        first_seen, is_final = now, False
        if last is not None:
            if last.stamp == stamp:
                first_seen = last.first_seen
                is_final = now - first_seen > _TICKS and stamp.changed % 1_000_000_000 != 0
            if start_after == last.start_after and len(entries) != len(last.entries):
                if last.stamp != stamp:
                    self._stamps_tell = self._stamps_tell is not False
                elif last.is_final:
                    self._stamps_tell = False  # something new, and it did not tell
        if len(entries) <= _WORTH_REMEMBERING:
            if len(known) == _FOLDERS_REMEMBERED:
                del known[next(iter(known))]
            look = _Look(stamp, first_seen, now, is_final, start_after, entries)
            self._of = {**known, path: look}  # one assignment: threads share a storage


class _Stamp(NamedTuple):
    device: int
    number: int
    changed: int
    touched: int
    """Nobody can set this one, not even who copies a folder with its times."""


def _stamp(path: str) -> _Stamp:
    status = os.stat(path)
    return _Stamp(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


class _FileSink:
    """A file under its temporary name."""

    def __init__(self, path: str):
        self._path = path
        self._descriptor, self._temporary = _open_temporary(path)

    def write(self, pieces: Sequence[Buffer]) -> None:
        if self._descriptor < 0:
            raise SMDebugRuntimeError(f"{self._path} was committed or aborted: begin a new object")
        try:
            if len(pieces) <= _PIECES_AT_ONCE:
                _write_all(self._descriptor, pieces)
            else:
                for first in range(0, len(pieces), _PIECES_AT_ONCE):
                    _write_all(self._descriptor, pieces[first : first + _PIECES_AT_ONCE])
        except OSError as error:
            raise _typed(error, self._path) from error

    def commit(self) -> None:
        if self._descriptor < 0:
            raise SMDebugRuntimeError(f"{self._path} was committed or aborted: begin a new object")
        try:
            # Closed, and so unlocked, only after the rename: until then the name is ours.
            os.rename(self._temporary, self._path)
        except OSError as error:
            self.abort()
            raise _typed(error, self._path) from error
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.close(descriptor)  # a network file system may say only now that it is full
        except OSError as error:
            raise _typed(error, self._path) from error

    def abort(self) -> None:
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # the next writer of this name takes over what is left
            os.unlink(self._temporary)
        with suppress(OSError):
            os.close(descriptor)


def _open_temporary(path: str) -> tuple[int, str]:
    """A locked, empty file beside `path`: its name and `.tmp`, unless another writer is at that one.

    A `.tmp` that nobody holds locked was left by a writer that was killed, and is taken over.
    """
    spare = f"{path}.{os.getpid()}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"
    for name in (path + TEMPORARY_SUFFIX, spare):
        try:
            descriptor = os.open(name, _CREATE, 0o666)
        except OSError as error:
            if name is not spare and error.errno in (
                errno.ELOOP,
                errno.EISDIR,
                errno.EACCES,
                errno.ENXIO,
            ):
                continue  # a link, a folder, somebody else's file
            raise
        if name is spare or _holds(descriptor, name):
            return descriptor, name
        os.close(descriptor)
    raise AssertionError("the spare name is always taken")


def _holds(descriptor: int, name: str) -> bool:
    """Lock the file and empty it, if it is still the one of that name and nobody else is at it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine, there = os.fstat(descriptor), os.stat(name)
    except OSError:
        return False
    # Between opening and locking, its writer may have finished: then this is the finished file.
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
    # A full disk, a signal or more than 2 GB: go on behind what was taken.
    rest = [memoryview(piece).cast("B") for piece in pieces if memoryview(piece).nbytes]
    done = sum(piece.nbytes for piece in rest) - left
    while rest:
        while rest and done >= rest[0].nbytes:
            done -= rest.pop(0).nbytes
        if rest:
            rest[0] = rest[0][done:]
            done = os.writev(descriptor, rest)


def _mapped(descriptor: int, start: int, stop: int) -> memoryview:
    first = start - start % mmap.ALLOCATIONGRANULARITY
    pages = mmap.mmap(descriptor, stop - first, access=mmap.ACCESS_COPY, offset=first)
    return memoryview(pages)[start - first :]


def _real_path(path: str, descriptor: int | None = None) -> str:
    if descriptor is not None:
        try:
            # What was opened, not what the path says now; and one call instead of one for each part.
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            pass  # not Linux
    return os.path.realpath(path)


def _nearest_existing(folder: str) -> str:
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder


def _reading(error: OSError, path: str) -> StorageError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
        return ObjectMissing(path)
    return _typed(error, path)


def _typed(error: OSError, path: str) -> StorageError:
    kind, advice = _ADVICE.get(error.errno, (StorageError, "the system refuses it"))
    return kind(path, f"{advice} ({error.strerror or error})")
