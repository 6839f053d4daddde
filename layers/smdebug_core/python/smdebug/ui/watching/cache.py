"""Results about ended runs, in a folder that may be deleted at any time.

It is bounded: the files used longest ago are removed first. A file that cannot be read or written is
treated as missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import smdebug

MOST_BYTES = 512 << 20
_VERSION = 4
_LONGEST_MARK = 1 << 16
_LONGEST_FILE = 64 << 20


def default_folder() -> Path:
    """Return the folder for caches of the user: `$SMDEBUG_UI_CACHE`, else that of the system."""
    named = os.environ.get("SMDEBUG_UI_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "smdebug" / "ui"


class Cache:
    """JSON by the path of a run and a mark of its content."""

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES):
        self._folder = folder
        self._most_bytes = most_bytes
        self._written = 0

    @property
    def folder(self) -> Path | None:
        return self._folder

    @property
    def is_on(self) -> bool:
        return self._folder is not None

    @property
    def longest(self) -> int:
        """How many bytes a single entry may have."""
        return self._most_bytes // 4

    @contextmanager
    def opened(self, kind: str, path: str, mark: str) -> Iterator[IO[bytes] | None]:
        """Open what was put there, at the beginning of its content; None if there is nothing."""
        file = self._file(kind, path)
        with ExitStack() as stack:
            found: IO[bytes] | None = None
            with suppress(OSError):
                if file is not None and file.stat().st_size <= self.longest + _LONGEST_MARK:
                    content = stack.enter_context(file.open("rb"))
                    head = content.readline(_LONGEST_MARK)
                    if head == _line(self._mark(path, mark)) + b"\n":
                        os.utime(file)
                        found = content
            yield found

    def put_content(self, kind: str, path: str, mark: str, write: Callable[[IO[bytes]], None]) -> None:
        """Keep what `write` writes into a file, unless it is too much."""
        head = _line(self._mark(path, mark)) + b"\n"

        def with_mark(content: IO[bytes]) -> None:
            content.write(head)
            write(content)

        self._write(kind, path, with_mark, self.longest + len(head))

    def has(self, kind: str, path: str) -> bool:
        """Return whether anything was put there, whatever its mark."""
        file = self._file(kind, path)
        return file is not None and file.is_file()

    def get(self, kind: str, path: str, mark: str) -> Any:
        """Return what was put there, or None."""
        file = self._file(kind, path)
        if file is None:
            return None
        try:
            if file.stat().st_size > _LONGEST_FILE:
                return None
            content = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(content, Mapping) or content.get("mark") != self._mark(path, mark):
            return None
        with suppress(OSError):
            os.utime(file)
        return content.get("value")

    def put(self, kind: str, path: str, mark: str, value: Any) -> None:
        """Keep a value; nothing happens where the folder cannot be written."""
        data = json.dumps({"mark": self._mark(path, mark), "value": value}).encode()
        self._write(kind, path, lambda content: content.write(data))

    def _write(
        self,
        kind: str,
        path: str,
        write: Callable[[IO[bytes]], object],
        longest: int | None = None,
    ) -> None:
        file = self._file(kind, path)
        if file is None:
            return
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
            try:
                with temporary.open("wb") as content:
                    write(content)
                    size = content.tell()
                if longest is None or size <= longest:
                    self._make_room(size)
                    temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        self._written += size
        if self._written > self._most_bytes // 8:
            self._written = 0
            self.trim()

    def trim(self) -> None:
        """Remove the files used longest ago, until the others fit."""
        if self._folder is None:
            return
        found: list[tuple[float, int, Path]] = []
        with suppress(OSError):
            for file in self._folder.iterdir():
                status = file.stat()
                if file.suffix not in (".json", ".tmp"):
                    continue  # not of this cache
                found.append((status.st_mtime, status.st_size, file))
        left = self._most_bytes
        for _, size, file in sorted(found, reverse=True):
            left -= size
            if left < 0:
                with suppress(OSError):
                    file.unlink()

    def _file(self, kind: str, path: str) -> Path | None:
        if self._folder is None:
            return None
        return (
            self._folder
            / f"{kind}-{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
        )

    @staticmethod
    def _mark(path: str, mark: str) -> str:
        return f"{_VERSION} {smdebug.__version__} {path!a} {mark}"


def _line(mark: str) -> bytes:
    return json.dumps(mark).encode()
