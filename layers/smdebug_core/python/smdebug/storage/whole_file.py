"""A file that appears only when it is complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path


@contextmanager
def whole_file(to: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a path beside `to` to write to; the file replaces `to` at the end of the block.

    A link stays one: the file that it names is replaced. A pipe or a device is written to as it is.
    """
    given = Path(to).expanduser()
    if given.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), os.fspath(to))
    if given.exists() and not given.is_file():
        yield str(given)
        return
    target = given.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:  # of a file without a known name
        raise OSError(error.errno, error.strerror, os.fspath(to)) from None
    os.close(handle)
    try:
        yield name
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()
