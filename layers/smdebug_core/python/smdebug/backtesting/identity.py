"""What says that a run is as it was when it was judged."""

from __future__ import annotations

import hashlib

from smdebug.exceptions import SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER, END_MARKER, INDEX_FOLDER
from smdebug.storage import Storage


def identity_of(storage: Storage) -> str:
    """Return a digest that changes when the run goes on, ends or is written anew.

    It reads the names of the index files, the last of them, which names the attempt and its time, and the
    closing notes, but none of the values.
    """
    digest = hashlib.sha256()
    last = ""
    for key in storage.list(INDEX_FOLDER):
        digest.update(key.encode() + b"\n")
        last = key
    notes = list(storage.list(COLLECTIONS_FOLDER))
    for key in [*notes, *([last] if last else [])]:
        digest.update(key.encode() + b"\n" + _content(storage, key))
    digest.update(b"ended" if storage.exists(END_MARKER) else b"")
    return digest.hexdigest()


def within(identity: str, seconds: float) -> str:
    """Return the identity of a run that had no verdict within that time: with more, it is judged again."""
    return f"{identity} within {seconds:g} s"


def _content(storage: Storage, key: str) -> bytes:
    try:
        return bytes(storage.read(key))
    except SMDebugError as error:
        return repr(error).encode()
