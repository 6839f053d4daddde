"""Translate the errors of a file system into those of storages."""

from __future__ import annotations

import errno

from smdebug.exceptions import AccessDenied, ObjectMissing, StorageError, StorageUnavailable

_ADVICE: dict[int | None, tuple[type[StorageError], str]] = {
    errno.EACCES: (
        AccessDenied,
        "the permissions of the file, or of a folder above it, do not allow this",
    ),
    errno.EPERM: (AccessDenied, "the system does not allow this; check owner and attributes"),
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
        "the network file system does not respond; check its server",
    ),
    errno.EMFILE: (StorageUnavailable, "too many open files in this process; raise `ulimit -n`"),
    errno.ENFILE: (StorageUnavailable, "too many open files on this machine"),
    errno.ENOTDIR: (
        StorageError,
        "part of the path is a file instead of a folder; move it away",
    ),
    errno.EEXIST: (
        StorageError,
        "part of the path is a file instead of a folder; move it away",
    ),
    errno.EISDIR: (StorageError, "a folder has this name; move it away"),
    errno.ENAMETOOLONG: (StorageError, "the name is too long for this file system"),
    errno.ELOOP: (StorageError, "symbolic links form a loop; replace them with real files"),
    errno.ENOENT: (StorageUnavailable, "the folder no longer exists; was it removed while in use?"),
}


def reading_error(error: OSError, path: str) -> StorageError:
    """Return the `StorageError` for an error of reading: a missing file is `ObjectMissing`."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
        return ObjectMissing(path)
    return storage_error(error, path)


def storage_error(error: OSError, path: str) -> StorageError:
    """Return the `StorageError` for an error of the file system, with what to do about it."""
    kind, advice = _ADVICE.get(error.errno, (StorageError, "the system refused this"))
    return kind(path, f"{advice} ({error.strerror or error})")
