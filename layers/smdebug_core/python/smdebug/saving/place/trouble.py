"""What is wrong with a place, said once: every part of a hook that uses the place meets the same."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from smdebug.exceptions import StorageError
from smdebug.logger import get_logger
from smdebug.storage.base import Storage

_known: WeakKeyDictionary[Storage, set[str]] = WeakKeyDictionary()


def warn_of_storage(storage: Storage, error: Exception, message: str, *details: object) -> None:
    """Log a warning that ends with the error, unless another said the same of this storage."""
    problem = error.problem if isinstance(error, StorageError) else str(error)
    known = _known.setdefault(storage, set())
    log = get_logger().debug if problem in known else get_logger().warning
    known.add(problem)
    log(message, *details, error)
