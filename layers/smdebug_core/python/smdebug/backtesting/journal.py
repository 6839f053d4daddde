"""The verdicts so far, in a file that survives the process: a line for each run, appended when it is judged.

A line that a killed process left unfinished is passed over. The file only saves work: without it, or with
another rule or another run under the same name, everything is judged anew.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from smdebug.backtesting.rows import Row
from smdebug.exceptions import SMDebugCustomerError

_READ = 1 << 13  # bytes: the line of most runs


class Journal:
    """The runs that were judged, in one file for each question. In memory are only the places in the file."""

    def __init__(self, file: Path, digest: str):
        file.parent.mkdir(parents=True, exist_ok=True)
        self._digest = digest
        self._starts: dict[int, int] = {}  # by the hash of a run's location
        self._file = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", 0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SMDebugCustomerError(
                f"Another backtest of the same rules writes {file}. Wait for it, or name another --journal"
            ) from None
        if os.pread(self._file.fileno(), 1, 0) not in (b"", b"{"):
            self._file.close()
            raise SMDebugCustomerError(
                f"{file} is no journal of a backtest: name another with --journal, or delete it if "
                "nobody needs it"
            )
        self._read()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._starts)

    def identity_of(self, location: str) -> str:
        """Return what the run was when it was judged; empty if it was not."""
        return str(self._entry(location).get("identity", ""))

    def rows_of(self, location: str) -> tuple[Row, ...]:
        """Return the verdicts on the run."""
        return tuple(map(Row.from_dict, self._entry(location).get("rows", ())))

    def add(self, location: str, identity: str, rows: tuple[Row, ...]) -> None:
        """Append the verdicts on a run."""
        payload = {
            "question": self._digest,
            "run": location,
            "identity": identity,
            "rows": [row.to_dict() for row in rows],
        }
        line = json.dumps(payload).encode() + b"\n"
        end = os.fstat(self._file.fileno()).st_size
        self._file.write(line)
        self._starts[hash(location)] = end

    def _read(self) -> None:
        start, line = 0, b""
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            lines.seek(0)
            for line in lines:
                if line.endswith(b"\n") and (payload := self._parsed(line)):
                    self._starts[hash(payload["run"])] = start
                start += len(line)
        if line and not line.endswith(b"\n"):
            self._file.write(b"\n")  # a killed process left it unfinished

    def _entry(self, location: str) -> Mapping[str, Any]:
        """Return the last line on the run; empty if there is none, or if another run has its hash."""
        start = self._starts.get(hash(location))
        entry = None if start is None else self._parsed(self._line(start))
        return entry if entry and entry["run"] == location else {}

    def _line(self, start: int) -> bytes:
        """Return a line of the file; several threads may do so at a time."""
        parts = []
        while part := os.pread(self._file.fileno(), _READ, start):
            head, newline, _ = part.partition(b"\n")
            parts.append(head)
            if newline:
                break
            start += len(part)
        return b"".join(parts)

    def _parsed(self, line: bytes) -> Mapping[str, Any] | None:
        with suppress(ValueError):
            payload = json.loads(line)
            if isinstance(payload, dict) and payload.get("question") == self._digest:
                return payload
        return None


def default_journal(digest: str) -> Path:
    """Return the file of a question in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "smdebug" / "backtests" / f"{digest[:32]}.jsonl"
