"""Records as lines of JSON: in a file that grows, or in one that appears once it is complete."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.sinks.records import FileRecord, Record, ReportRecord, RunRecord
from smdebug.storage.whole_file import whole_file

STDOUT = "-"


class LineSink:
    """Appends lines to a file, for `-` to `stdout`; with `whole`, the file is replaced at the end."""

    def __init__(self, file: str, *, whole: bool = False, stdout: IO[str] | None = None):
        self.notes: list[str] = []
        self._file = file
        self._whole = whole
        self._stdout = stdout if file == STDOUT else None
        self._stream: IO[str] | None = None
        self._files = ExitStack()
        self._run: RunRecord | None = None

    @property
    def place(self) -> str:
        """The file."""
        return self._file if self._stdout is None else "standard output"

    @property
    def run_name(self) -> str:
        """The run, once it has begun."""
        return "" if self._run is None else self._run.name

    def begin(self, run: RunRecord) -> None:
        """Open the file; its folder is made."""
        self._run = run
        if self._stream is None:
            try:
                self._stream = self._stdout or self._opened()
            except OSError as error:
                raise SinkRefused(self.place, f"it cannot be written: {error.strerror}") from error
        self.send([run])

    def send(self, records: Sequence[Record]) -> None:
        """Write the lines of each record, all of them at once."""
        text = "".join(f"{line}\n" for record in records for line in self.lines_of(record))
        if not text or self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SinkUnavailable(self.place, f"it cannot be written: {error.strerror}") from error

    def end(self, *, is_complete: bool = True) -> None:
        """Close the file. One that was to appear complete is thrown away if it is not."""
        self._stream = None
        error = None if is_complete else _Incomplete()
        self._files.__exit__(None if error is None else type(error), error, None)

    def lines_of(self, record: Record) -> list[str]:
        """Return the lines of a record, with the name of its run. A report has none."""
        if isinstance(record, ReportRecord | FileRecord):
            return []
        line = {"run": self.run_name, **record.to_dict()}
        return [json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))]

    def _opened(self) -> IO[str]:
        path, mode = Path(self._file).expanduser(), "a"
        if self._whole:
            path, mode = Path(self._files.enter_context(whole_file(self._file))), "w"
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        stream: IO[str] = self._files.enter_context(
            path.open(mode, encoding="utf-8", errors="backslashreplace")
        )
        return stream


class _Incomplete(Exception):
    """Ends the block in which a whole file is written, so that it does not appear."""
