"""Where the old classes' paths lead: a place, and the key of one file there."""

from __future__ import annotations

import os

from smdebug.storage import Storage, open_storage


def place_of(path: str | os.PathLike[str]) -> tuple[Storage, str]:
    """The storage of the folder or prefix that `path` is in, and the name in it."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return open_storage(folder or slash or "."), name
