"""Event files, read without their index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from smdebug.compatibility.old_file import OldFile, place_of
from smdebug.compatibility.records import TensorReader
from smdebug.config.patterns import matches_any
from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.mode_keys import ModeKeys


class FileReader(OldFile):
    """Reads the tensors of one event file, in its order.

    `check` is "minimal" or True (lengths and footers), "full" (each footer is a true checksum), else none.
    """

    def __init__(self, fname: str | os.PathLike[str], wtype: str = "tfevent"):
        if wtype != "tfevent":
            raise SMDebugNotImplementedError(f'Files of type {wtype!r} are not read, only "tfevent"')
        self._file = os.fspath(fname)

    def read_tensors(
        self, check: str | bool | None = "minimal"
    ) -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """Yield name, step, value, mode and mode step of each tensor; without a mode, GLOBAL and the step."""
        yield from self._opened().read_tensors(check)

    def read_events(
        self, check: str | bool | None = "minimal", regex_list: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return timestamp, step, name and value of each tensor whose name matches one of the regexes."""
        return [
            {
                "timestamp": event.wall_time,
                "step": event.step,
                "name": event.name,
                "value": event.value,
            }
            for event in self._opened().decoded(check)
            if not regex_list or matches_any(event.name, regex_list)
        ]

    def _opened(self) -> TensorReader:
        storage, key = place_of(self._file)
        return TensorReader(storage.view(key), self._file)
