"""A run in a local folder.

An object is written under its name and `.tmp`, then renamed: a reader sees all of it or nothing, even
after the writer was killed. (After a power failure the newest files may be empty: there is no fsync.)

The folder itself may be a symbolic link. Links inside it are followed if they stay inside. A link that
leads outside is refused, and so is anything but a regular file: nothing outside the run is read or
written. Folders behind links are not listed.
"""
# Paths are plain text here: making a `Path` costs more than opening the file.
# ruff: noqa: PTH103, PTH108, PTH112, PTH113, PTH115, PTH116, PTH120

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from smdebug.exceptions import SMDebugValueError, UnfitFile
from smdebug.storage.base import Buffer, ByteSpan, Sink
from smdebug.storage.file_writing import CREATE, FileSink
from smdebug.storage.folder_errors import reading_error, storage_error
from smdebug.storage.folder_memory import FolderMemory, stamp_of
from smdebug.storage.keys import (
    checked_key,
    checked_prefix,
    checked_span,
    checked_start,
    clipped,
    is_key,
)
from smdebug.storage.unfinished import remove_unfinished
from smdebug.storage.versions import Version

WORTH_MAPPING = 64 << 10
"""Size in bytes from which a view maps the file instead of copying it."""

# O_NONBLOCK: opening a pipe that was left in the run must not wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class FolderStorage:
    """Objects as files below one folder, which is made when the first of them is written."""

    def __init__(self, folder: str | os.PathLike[str]):
        path = os.fspath(folder)
        if not path or "\0" in path:
            raise SMDebugValueError(f"{path!r} is not the path of a folder")
        self._root = str(Path(path).expanduser().absolute())
        self._beginning = self._root.rstrip("/") + "/"
        self._real_beginning = ""
        self._memory = FolderMemory()

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
                        break  # the file was truncated meanwhile: return what is left
                    data += more
                return data
            finally:
                os.close(descriptor)
        except OSError as error:
            raise reading_error(error, path) from error

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        path = self._path(key)
        checked_span(span)
        try:
            descriptor, size = self._open(path)
            try:
                # Never past the current end of the file: touching such a page would kill the process.
                start, stop = clipped(span, size)
                if stop - start >= WORTH_MAPPING:
                    return _mapped(descriptor, start, stop)
                copy = bytearray(stop - start)
                return memoryview(copy)[: os.preadv(descriptor, [copy], start)]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise reading_error(error, path) from error

    def size(self, key: str) -> int:
        path = self._path(key)
        try:
            descriptor, size = self._open(path)
        except OSError as error:
            raise reading_error(error, path) from error
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
            raise reading_error(error, path) from error
        return True

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        checked_prefix(prefix)
        checked_start(start_after)
        folder, slash, _ = prefix.rpartition("/")
        return self._keys_in(folder + slash, prefix, start_after or "")

    def versions(self, prefix: str) -> Iterator[Version]:
        """Keys with their sizes, and the numbers and times of change of the files."""
        for key in self.list(prefix):
            with suppress(OSError):  # removed since it was listed, or a link that leads nowhere
                status = os.stat(self._path(key))
                tag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"
                yield Version(key, status.st_size, tag)

    def folders(self, prefix: str) -> Iterator[str]:
        """Names of the folders directly below `prefix` that have any key: it is read once for all of them."""
        for key in self._sorted_entries(checked_prefix(prefix), ""):
            if key[-1] == "/" and next(self._keys_in(key, key, ""), None) is not None:
                yield key[len(prefix) : -1]

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
            return FileSink(path)
        except OSError as error:
            raise storage_error(error, path) from error

    def claim(self, key: str) -> bool:
        path = self._path(key)
        try:
            self._make_folder_of(path)
            try:
                os.close(os.open(path, CREATE | os.O_EXCL, 0o666))
            except FileExistsError:
                return False
        except OSError as error:
            raise storage_error(error, path) from error
        return True

    def replace(self, key: str, known: bytes | None, data: Buffer) -> bool:
        """Write the object if it is still `known`, or still missing; return False if another was first."""
        with self._alone():
            is_known = (self.read(key) if self.exists(key) else None) == known
            if is_known:
                self.write(key, data)
            return is_known

    def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            self._refuse_outside(os.path.dirname(path))  # a link itself may be removed
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise storage_error(error, path) from error

    def remove_unfinished(self, worker: str) -> int:
        """Remove unfinished files of that worker which nobody writes any more; return how many."""
        return remove_unfinished(self._root, worker)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep out other processes that replace something; a folder that cannot be locked is not."""
        descriptor = -1
        with suppress(OSError):
            descriptor = os.open(self._root, _READ | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    # Staying inside the folder

    def _path(self, key: str) -> str:
        return self._beginning + checked_key(key)

    def _open(self, path: str) -> tuple[int, int]:
        """Open the regular file at `path`; return its descriptor and size."""
        descriptor = os.open(path, _READ)
        try:
            self._refuse_outside(path, descriptor)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                return descriptor, status.st_size
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a folder", path)
            raise UnfitFile(path, "it is neither a file nor a folder, and is not read")
        except BaseException:
            os.close(descriptor)
            raise

    def _refuse_outside(self, path: str, descriptor: int | None = None) -> None:
        real = _real_path(path, descriptor)
        if (real + "/").startswith(self._real_beginning or "\0"):
            return
        # First use, or the folder was moved, or its link has another target now.
        self._real_beginning = _real_path(self._root).rstrip("/") + "/"
        if not (real + "/").startswith(self._real_beginning):
            raise UnfitFile(
                path,
                f"it leads outside the run, to {real}, where nothing is read or written. "
                "Copy the files into the run, or open the run at its real location.",
            )

    def _make_folder_of(self, path: str) -> None:
        folder = os.path.dirname(path)
        real = _real_folder(folder)
        if real is not None and (real + "/").startswith(self._real_beginning or "\0"):
            return
        if not os.path.isdir(folder):
            if os.path.isdir(self._root):
                self._refuse_outside(_nearest_existing(folder))
            os.makedirs(folder, exist_ok=True)
        self._refuse_outside(folder)

    def _keys_in(self, folder: str, prefix: str, start_after: str) -> Iterator[str]:
        for key in self._sorted_entries(folder, start_after):
            # A folder that sorts before `start_after` and is not part of it has no later keys.
            if key <= start_after and not (key[-1] == "/" and start_after.startswith(key)):
                continue
            if key[-1] != "/":
                if key.startswith(prefix) and is_key(key):
                    yield key
            elif key.startswith(prefix) or prefix.startswith(key):
                yield from self._keys_in(key, prefix, start_after)

    def _sorted_entries(self, folder: str, start_after: str) -> Sequence[str]:
        """Return the entries of a folder as keys; a folder sorts by its name and `/`, like its keys."""
        path = self._beginning + folder
        try:
            stamp = stamp_of(path)
            entries = self._memory.unchanged(path, stamp, start_after)
            if entries is None:
                entries = self._entries(path, folder, start_after)
                self._memory.note(path, stamp, start_after, entries)
        except FileNotFoundError:
            return ()
        except NotADirectoryError as error:
            if os.path.isfile(self._root):
                raise storage_error(error, self._root) from error
            return ()
        except OSError as error:
            raise reading_error(error, path) from error
        return sorted(entries)

    def _entries(self, path: str, folder: str, start_after: str) -> Sequence[str]:
        """Return the entries of a folder as keys, without most of those before `start_after`."""
        entries = []
        after = start_after.removeprefix(folder) if start_after.startswith(folder) else ""
        with os.scandir(path) as found:
            for entry in found:
                name = entry.name
                if name < after and not after.startswith(name):
                    continue  # most entries: nothing more is needed of them
                key = folder + name
                if entry.is_dir(follow_symlinks=False):
                    entries.append(key + "/")
                elif entry.is_symlink() and entry.is_dir():
                    self._refuse_outside(entry.path)
                else:
                    entries.append(key)
        return entries


def _mapped(descriptor: int, start: int, stop: int) -> memoryview:
    first = start - start % mmap.ALLOCATIONGRANULARITY
    pages = mmap.mmap(descriptor, stop - first, access=mmap.ACCESS_COPY, offset=first)
    return memoryview(pages)[start - first :]


def _real_path(path: str, descriptor: int | None = None) -> str:
    if descriptor is not None:
        try:
            # The opened file, whatever the path means now; one call instead of one per part of the path.
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            pass  # not Linux
    return os.path.realpath(path)


def _real_folder(path: str) -> str | None:
    """The real path of a folder, by few calls; None if there is none, or it cannot be opened like that."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, AttributeError):  # it does not exist, or this is not Linux
        return None
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _nearest_existing(folder: str) -> str:
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder
