"""The pipe from the training: its first line has the settings, and its end is the end of the training."""

from __future__ import annotations

import os
import select
from typing import BinaryIO


class TrainingPipe:
    """Knows whether the training still runs."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._parent = os.getppid()
        self._ended = False

    def first_line(self) -> bytes:
        """Return the settings; empty if the training ended before."""
        return self._stream.readline()

    def is_open_after(self, seconds: float) -> bool:
        """Wait that long, or until the training has ended; return whether it still runs.

        A process that the training forked may hold the pipe open, so the parent process is checked as well.
        """
        if self._ended:
            return False
        readable, _, _ = select.select([self._stream], [], [], seconds)
        self._ended = bool(readable) or os.getppid() != self._parent
        return not self._ended
