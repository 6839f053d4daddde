"""Python code out of scripts and notebooks: parsed, and in pieces where a part cannot be parsed."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from smdebug.migrating.findings import Finding, Place, Verdict

_LARGEST = 64 << 20
_MOST_CODE = 4 << 20
_MAGIC = re.compile(r"^\s*(?:[!%?]|\w[\w.]*\?{1,2}\s*$|(?:pip|conda)\s+\w)")
_STARTS_STATEMENT = re.compile(r"^[^\s#)\]}]")
_CONTINUES = re.compile(r"^(?:else|elif|except|finally)\b")
_TOO_MUCH_CODE = f"There are more than {_MOST_CODE >> 20} million characters of code in it."
_MOST_ERRORS = 20  # that are listed, of one script or cell
_LONGEST_LINE = 300  # characters that are shown
_TRIES_A_LINE = 20  # how often a line is parsed at most, on average
_ALLOW_INCOMPLETE_INPUT = 0x4000 | 0x200  # as `codeop` does: an error says whether more lines could mend it


@dataclass(frozen=True)
class Code:
    """The code of a script or of one cell, with the statements that could be parsed."""

    file: str
    cell: int | None
    lines: Sequence[str]
    statements: Sequence[ast.stmt]

    def place(self, line: int) -> Place:
        """Return the place of that line."""
        return Place(self.file, self.cell, line)

    def line(self, number: int) -> str:
        """Return the text of that line."""
        return self.lines[number - 1].strip()[:_LONGEST_LINE] if 0 < number <= len(self.lines) else ""


@dataclass(frozen=True)
class Source:
    """One file: its code, and findings about the parts that are not Python."""

    codes: Sequence[Code]
    findings: Sequence[Finding]


def files_below(path: Path) -> list[Path]:
    """Return the file, or every script and notebook below the folder."""
    if not path.is_dir():
        return [path]
    found = [*path.rglob("*.py"), *path.rglob("*.ipynb")]
    hidden = re.compile(r"^\.[^.]|^__pycache__$")
    return sorted(f for f in found if not any(map(hidden.match, f.relative_to(path).parts)))


def read_source(path: Path) -> Source:
    """Read a script or a notebook; a file that is neither is a finding."""
    try:
        data = _content(path)
    except OSError as error:
        return _unreadable(path, f"{error.strerror or error}.")
    if data is None:
        return _unreadable(path, "This is not a regular file.")
    if len(data) > _LARGEST:
        return _unreadable(path, f"The file is larger than {_LARGEST >> 20} MB.")
    if path.suffix == ".ipynb":
        return _read_notebook(path, data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return _unreadable(path, f"This is not text: {error}.")
    if len(text) > _MOST_CODE:
        return _unreadable(path, _TOO_MUCH_CODE)
    return _joined([parse(str(path), None, text)])


def _content(path: Path) -> bytes | None:
    """Return the content of a regular file, at most one byte more than the limit; else None.

    A pipe is not waited for, and whatever size a file claims to have, no more is read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_LARGEST + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _read_notebook(path: Path, data: bytes) -> Source:
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 1)
        return _unreadable(path, f"This notebook is not JSON: {error}.", line)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict):  # the format before version 4
        cells = [cell for sheet in _list(notebook.get("worksheets")) for cell in _cells(sheet)]
    if not isinstance(cells, list) or (not cells and "cells" not in notebook):
        return _unreadable(path, "This JSON is not a notebook: it has no cells.")
    parsed = []
    length = 0
    code_cells = (c for c in cells if isinstance(c, dict) and c.get("cell_type") == "code")
    for number, cell in enumerate(code_cells, start=1):
        source = cell.get("source", cell.get("input", ""))
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        length += len(text)
        if length > _MOST_CODE:
            return _unreadable(path, _TOO_MUCH_CODE)
        parsed.append(parse(str(path), number, text))
    return _joined(parsed)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cells(sheet: Any) -> list[Any]:
    return _list(sheet.get("cells")) if isinstance(sheet, dict) else []


def _joined(parsed: Sequence[tuple[Code, list[Finding]]]) -> Source:
    return Source([code for code, _ in parsed], [finding for _, findings in parsed for finding in findings])


def unreadable(path: Path, message: str, line: int = 1) -> Finding:
    """Return the finding of a file that cannot be scanned."""
    return Finding(Place(str(path), None, line), "", Verdict.UNREADABLE, message)


def _unreadable(path: Path, message: str, line: int = 1) -> Source:
    return Source([], [unreadable(path, message, line)])


def parse(file: str, cell: int | None, text: str) -> tuple[Code, list[Finding]]:
    """Parse what can be parsed; a statement that is not Python is a finding, and the rest is parsed."""
    lines = text.splitlines()
    findings: list[Finding] = []
    if cell is not None:
        lines, findings = _without_magics(file, cell, lines)
    statements: list[ast.stmt] = []
    errors = 0
    for first, parsed in _statements(lines):
        if isinstance(parsed, ast.Module):
            statements += parsed.body
            continue
        line = min(first + parsed.line - 1, len(lines))
        errors += 1
        if errors > _MOST_ERRORS:
            continue
        findings.append(
            Finding(
                Place(file, cell, line),
                lines[line - 1].strip()[:_LONGEST_LINE] if lines else "",
                Verdict.UNREADABLE,
                f"This is not Python 3: {parsed.reason}. The rest is scanned.",
            )
        )
    if errors > _MOST_ERRORS:
        last = findings[-1]
        more = f"{last.message} {errors - _MOST_ERRORS:,} more statements are not Python 3."
        findings[-1] = replace(last, message=more)
    return Code(file, cell, text.splitlines(), statements), findings


def _without_magics(file: str, cell: int, lines: list[str]) -> tuple[list[str], list[Finding]]:
    """Replace IPython's magics by `pass`, and report those that install the old library."""
    findings = []
    python = []
    whole_cell = bool(lines) and lines[0].lstrip().startswith("%%")
    in_python = not whole_cell or re.match(r"\s*%%(?:time|timeit|capture|prun)\b", lines[0])
    for number, line in enumerate(lines, start=1):
        magic = _MAGIC.match(line) or not in_python
        if not magic:
            python.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())] if in_python else ""
        python.append(f"{indent}pass")
        if re.search(r"\b(?:pip3?|conda) install\b.*\b(?:smdebug|tornasole)\b(?!-)", line):
            findings.append(
                Finding(
                    Place(file, cell, number),
                    line.strip(),
                    Verdict.CHANGES,
                    "This installs the old library.",
                    "pip install smdebug-serverless",
                )
            )
    return python, findings


class _NotPython(NamedTuple):
    """Why some lines are not Python 3."""

    reason: str
    line: int
    """The line of the error, counted from 1."""
    is_incomplete: bool
    """Whether more lines could mend it."""


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, ast.Module | _NotPython]]:
    """Parse the whole text, or statement by statement if there is an error in it.

    A statement may need several chunks, such as the lines of a string at the left margin: as many as the
    parser calls incomplete, and one more. When many lines were parsed for it, no more are tried.
    """
    whole = _parsed(lines, 1)
    if isinstance(whole, ast.Module):
        yield 1, whole
        return
    starts = [n for n, line in enumerate(lines) if _STARTS_STATEMENT.match(line)]
    starts = [n for n in starts if not _CONTINUES.match(lines[n])] or [0]
    ends = [*starts[1:], len(lines)]
    lines_left = _TRIES_A_LINE * len(lines)

    def chunks(first: int, last: int) -> ast.Module | _NotPython:
        nonlocal lines_left
        lines_left -= ends[last] - starts[first]
        return _parsed(lines[starts[first] : ends[last]], starts[first] + 1)

    def is_complete(parsed: ast.Module | _NotPython) -> bool:
        return isinstance(parsed, ast.Module) or not parsed.is_incomplete

    at = 0
    while at < len(starts):
        begun = chunks(at, at)
        last, found = at, begun
        before, after = at, len(starts) - 1
        while not is_complete(found) and last < after and lines_left > 0:
            before, last = last, min(2 * last - at + 1, after)
            found = chunks(at, last)
        while is_complete(found) and last - before > 1:
            middle = (before + last) // 2
            if is_complete(tried := chunks(at, middle)):
                last, found = middle, tried
            else:
                before = middle
        if isinstance(found, ast.Module):
            yield starts[at] + 1, found
            at = last + 1
        else:
            yield starts[at] + 1, begun
            at += 1


def _parsed(lines: Sequence[str], first: int) -> ast.Module | _NotPython:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes of other people's strings
            code = "\n".join(lines) + "\n"
            tree = ast.parse(code)
    except SyntaxError as error:
        return _NotPython(error.msg, error.lineno or 1, _is_incomplete(code))
    except (ValueError, RecursionError, MemoryError) as error:
        return _NotPython(str(error) or "it is nested too deeply", 1, is_incomplete=False)
    if first > 1:
        ast.increment_lineno(tree, first - 1)
    return tree


def _is_incomplete(code: str) -> bool:
    flags = ast.PyCF_ONLY_AST | _ALLOW_INCOMPLETE_INPUT
    try:
        compile(code, "<script>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return error.msg == "incomplete input"
    return False
