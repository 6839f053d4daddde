"""Which lines of a room are executed: while its tests are imported, and by each test.

A statement that notes it is put before each statement of the room's modules when they are imported. Whatever
else the tests run costs nothing, unlike with a tracer of the interpreter.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

Place = tuple[str, int]
"""A file and a line."""
_NAME = "__mutate_executed__"


class Lines:
    """Notes the lines of the files below a folder that are executed from `begin` to `end`."""

    def __init__(self, folder: str):
        self._folder = folder
        self._places: list[tuple[str, tuple[int, ...]]] = []
        self._executed: set[int] = set()
        setattr(builtins, _NAME, self._executed)
        SourceFileLoader.source_to_code = self._compiled(SourceFileLoader.source_to_code)  # type: ignore[method-assign]

    def begin(self) -> None:
        """Forget what was noted."""
        self._executed.clear()

    def end(self) -> set[Place]:
        """Return what was noted since `begin`."""
        places = [self._places[at] for at in list(self._executed)]
        return {(file, line) for file, lines in places for line in lines}

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
