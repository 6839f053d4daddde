"""For code written against smdebug that reads event files without their index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from smdebug.config.patterns import matches_any
from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.files.event_parsing import Event
from smdebug.files.event_reading import Check, iterate_records
from smdebug.mode_keys import ModeKeys
from smdebug.storage import open_storage

__all__ = ["FileReader"]


class FileReader:
    """Reads the tensors of one event file, in its order.

    `check` is "minimal" or True (lengths and footers), "full" (each footer is a true checksum), else none.
    """

    def __init__(self, fname: str | os.PathLike[str], wtype: str = "tfevent"):
        if wtype != "tfevent":
            raise SMDebugNotImplementedError(
                f'Files of type {wtype!r} are not read, only "tfevent"'
            )
        self._file = os.fspath(fname)

    def __enter__(self) -> FileReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def read_tensors(
        self, check: str | bool | None = "minimal"
    ) -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """Yield name, step, value, mode and mode step of each tensor; without a mode, GLOBAL and the step."""
        for event in self._events(check):
            mode = ModeKeys.GLOBAL if event.mode is None else event.mode
            mode_step = event.step if event.mode_step is None else event.mode_step
            yield event.name, event.step, event.value, mode, mode_step

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
            for event in self._events(check)
            if not regex_list or matches_any(event.name, regex_list)
        ]

    def _events(self, check: str | bool | None) -> Iterator[Event]:
        folder, _, name = self._file.rpartition("/")
        data = open_storage(folder or ("/" if self._file.startswith("/") else ".")).view(name)
        yield from iterate_records(data, file=self._file, check=_CHECKS.get(check, "none"))


_CHECKS: dict[str | bool | None, Check] = {"minimal": "minimal", True: "minimal", "full": "full"}
