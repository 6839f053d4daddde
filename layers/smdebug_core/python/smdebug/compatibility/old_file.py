"""What the file classes of the old library have in common."""

from __future__ import annotations

import os
from typing import Self

from smdebug.storage import Storage, open_storage


class OldFile:
    """A file that ends with its `with` block. It appears on `close`, whole."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def flush(self) -> None:
        """Do nothing: readers see the whole file after `close`."""

    def close(self) -> None:
        """Do nothing: a reader has read the file already."""


def place_of(path: str | os.PathLike[str]) -> tuple[Storage, str]:
    """Return the storage of the folder or prefix that contains `path`, and the name in it."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return open_storage(folder or slash or "."), name
