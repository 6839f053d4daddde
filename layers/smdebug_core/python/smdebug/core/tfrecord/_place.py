"""Converts the paths that the old classes take to a storage and a key."""

from __future__ import annotations

import os

from smdebug.storage import Storage, open_storage


def place_of(path: str | os.PathLike[str]) -> tuple[Storage, str]:
    """Return the storage of the folder or prefix that contains `path`, and the name in it."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return open_storage(folder or slash or "."), name
