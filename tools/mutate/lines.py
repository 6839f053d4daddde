"""Which lines of a room are executed: while its tests are imported, and by each test.

A statement that notes it is put before each statement of the room's modules when they are imported. Whatever
else the tests run costs nothing, unlike with a tracer of the interpreter. Processes that a test starts write
what they execute to a file, at once, as they may be killed.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

Place = tuple[str, int]
"""A file and a line."""
_NAME = "__mutate_executed__"
_CURRENT = "test.txt"
STARTED = """
from contextlib import suppress
with suppress(ImportError):
    from tools.mutate.lines import tell
    tell(__file__)
"""
"""`sitecustomize.py` of the processes that tests start."""


class _Told:
    """Places that are written to a file when they are executed first."""

    def __init__(self, path: str, places: list[tuple[str, tuple[int, ...]]]):
        self._path, self._places = path, places
        self._seen: set[int] = set()
        self._calls = os.open, os.write, os.close  # a test may replace them

    def add(self, at: int) -> None:
        if at in self._seen:
            return
        self._seen.add(at)
        begin, write, end = self._calls
        with suppress(OSError):  # a test may leave no room
            file = begin(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                write(file, json.dumps(self._places[at]).encode() + b"\n")
            finally:
                end(file)


class Lines:
    """Notes the lines of the files below a folder that are executed from `begin` to `end`."""

    def __init__(self, folder: str):
        self._folder = folder
        self._places: list[tuple[str, tuple[int, ...]]] = []
        self._executed: set[int] = set()
        self._told: Path | None = None
        self._current: Path | None = None
        setattr(builtins, _NAME, self._executed)
        sys.dont_write_bytecode = True  # no other process can use the notes
        os.register_at_fork(after_in_child=self.tell)
        SourceFileLoader.source_to_code = self._compiled(SourceFileLoader.source_to_code)  # type: ignore[method-assign]

    def begin(self) -> None:
        """Forget what was noted."""
        self._executed.clear()

    def begin_test(self, file: Path, started: Path) -> None:
        """Forget what was noted; processes that are started from now on write theirs to this file."""
        self._told, self._current = file, started / _CURRENT
        self._current.write_text(f"{self._folder}\n{file}", encoding="utf-8")
        self.begin()

    def end(self) -> set[Place]:
        """Return what was noted since `begin`."""
        places = [self._places[at] for at in list(self._executed)]
        found = {(file, line) for file, lines in places for line in lines}
        if self._current:
            self._current.unlink(missing_ok=True)
        if self._told and self._told.is_file():
            for text in self._told.read_text(encoding="utf-8").splitlines():
                file, lines = json.loads(text)
                found |= {(file, line) for line in lines}
        self._told = None
        return found

    def tell(self, file: Path | None = None) -> None:
        """Write what this process executes to the file of the test that has started it."""
        self._told = file or self._told
        if self._told:
            setattr(builtins, _NAME, _Told(str(self._told), self._places))

    def _compiled(self, usual: Any) -> Any:
        def source_to_code(loader: Any, data: Any, path: Any, **options: Any) -> Any:
            if str(path).startswith(self._folder) and isinstance(data, bytes):
                data = self._noting(ast.parse(data, str(path)), str(path))
            return usual(loader, data, path, **options)

        return source_to_code

    def _noting(self, module: ast.Module, file: str) -> ast.Module:
        for node in list(ast.walk(module)):
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list):
                    setattr(node, name, list(self._with_notes(body, file)))
        return module

    def _with_notes(self, body: list[ast.stmt], file: str) -> Iterator[ast.stmt]:
        for at, statement in enumerate(body):
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if not is_future and not (is_docstring and at == 0):
                note = ast.parse(f"{_NAME}.add({len(self._places)})").body[0]
                for part in ast.walk(note):
                    ast.copy_location(part, statement)
                self._places.append((file, tuple(lines_of(statement))))
                yield note
            yield statement


def tell(stub: str) -> None:
    """In a process that a test has started: write what it executes. `stub` is its `sitecustomize.py`."""
    current = Path(stub).with_name(_CURRENT)
    if current.is_file():
        folder, file = current.read_text(encoding="utf-8").splitlines()
        Lines(folder).tell(Path(file))


def lines_of(statement: ast.stmt) -> Iterator[int]:
    """Yield the lines of a statement, without those of the statements in it."""
    inner: set[int] = set()
    for name in ("body", "orelse", "finalbody"):
        for other in getattr(statement, name, ()):
            inner.update(range(other.lineno, (other.end_lineno or other.lineno) + 1))
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for other in part.body:
            inner.update(range(other.lineno, (other.end_lineno or other.lineno) + 1))
    yield statement.lineno
    for line in range(statement.lineno + 1, (statement.end_lineno or statement.lineno) + 1):
        if line not in inner:
            yield line
