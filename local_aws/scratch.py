"""A folder that is removed whatever ends this process."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

JANITOR = Path(__file__).with_name("janitor.py")


@contextlib.contextmanager
def scratch_folder(place: str) -> Iterator[Path]:
    """Create the folder; a janitor process removes it when this process ends."""
    folder = Path(place)
    janitor = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-S", "-s", "-P", str(JANITOR), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        folder.mkdir(mode=0o700)  # after the janitor: ending earlier leaves no folder
        yield folder
    finally:
        assert janitor.stdin is not None
        janitor.stdin.close()
        try:
            janitor.wait(5)
        except subprocess.TimeoutExpired:
            janitor.kill()
            janitor.wait()
        shutil.rmtree(folder, ignore_errors=True)
