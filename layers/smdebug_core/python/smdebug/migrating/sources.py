"""Python code out of scripts and notebooks: parsed, and in pieces where a part cannot be parsed."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smdebug.migrating.findings import Finding, Place, Verdict

_LARGEST = 16 << 20
_MAGIC = re.compile(r"^\s*(?:[!%?]|\w[\w.]*\?{1,2}\s*$|(?:pip|conda)\s+\w)")
_STARTS_STATEMENT = re.compile(r"^[^\s#)\]}]")
_CONTINUES = re.compile(r"^(?:else|elif|except|finally)\b")
_MOST_CHUNKS = 200  # of which one statement may consist


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
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""


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
        if path.stat().st_size > _LARGEST:
            return _unreadable(path, f"The file is larger than {_LARGEST >> 20} MB.")
        data = path.read_bytes()
    except OSError as error:
        return _unreadable(path, f"{error.strerror or error}.")
    if path.suffix == ".ipynb":
        return _read_notebook(path, data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return _unreadable(path, f"This is not text: {error}.")
    return _joined([parse(str(path), None, text)])


def _read_notebook(path: Path, data: bytes) -> Source:
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        return _unreadable(path, f"This notebook is not JSON: {error}.", line)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict):  # the format before version 4
        cells = [cell for sheet in _list(notebook.get("worksheets")) for cell in _cells(sheet)]
    if not isinstance(cells, list) or (not cells and "cells" not in notebook):
        return _unreadable(path, "This JSON is not a notebook: it has no cells.")
    parsed = []
    code_cells = (c for c in cells if isinstance(c, dict) and c.get("cell_type") == "code")
    for number, cell in enumerate(code_cells, start=1):
        source = cell.get("source", cell.get("input", ""))
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        parsed.append(parse(str(path), number, text))
    return _joined(parsed)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cells(sheet: Any) -> list[Any]:
    return _list(sheet.get("cells")) if isinstance(sheet, dict) else []


def _joined(parsed: Sequence[tuple[Code, list[Finding]]]) -> Source:
    return Source([code for code, _ in parsed], [finding for _, findings in parsed for finding in findings])


def _unreadable(path: Path, message: str, line: int = 1) -> Source:
    return Source([], [Finding(Place(str(path), None, line), "", Verdict.UNREADABLE, message)])


def parse(file: str, cell: int | None, text: str) -> tuple[Code, list[Finding]]:
    """Parse what can be parsed; a statement that is not Python is a finding, and the rest is parsed."""
    lines = text.splitlines()
    findings: list[Finding] = []
    if cell is not None:
        lines, findings = _without_magics(file, cell, lines)
    statements: list[ast.stmt] = []
    for first, parsed in _statements(lines):
        if isinstance(parsed, ast.Module):
            statements += parsed.body
            continue
        line = first + (parsed.lineno or 1) - 1 if isinstance(parsed, SyntaxError) else first
        line = min(line, len(lines))
        reason = parsed.msg if isinstance(parsed, SyntaxError) else str(parsed)
        findings.append(
            Finding(
                Place(file, cell, line),
                lines[line - 1].strip() if lines else "",
                Verdict.UNREADABLE,
                f"This is not Python 3: {reason}. The rest is scanned.",
            )
        )
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


def _statements(
    lines: Sequence[str],
) -> Iterator[tuple[int, ast.Module | SyntaxError | ValueError | RecursionError]]:
    """Parse the whole text, or chunk by chunk if there is an error in it."""
    whole = _parsed(lines, 1)
    if isinstance(whole, ast.Module):
        yield 1, whole
        return
    starts = [n for n, line in enumerate(lines) if _STARTS_STATEMENT.match(line)]
    starts = [n for n in starts if not _CONTINUES.match(lines[n])] or [0]
    ends = [*starts[1:], len(lines)]
    at = 0
    while at < len(starts):
        for last in range(at, min(at + _MOST_CHUNKS, len(starts))):
            parsed = _parsed(lines[starts[at] : ends[last]], starts[at] + 1)
            if isinstance(parsed, ast.Module):
                yield starts[at] + 1, parsed
                at = last + 1
                break
        else:
            yield starts[at] + 1, _parsed(lines[starts[at] : ends[at]], 1)
            at += 1


def _parsed(lines: Sequence[str], first: int) -> ast.Module | SyntaxError | ValueError | RecursionError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes of other people's strings
            tree = ast.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError, RecursionError) as error:
        return error
    if first > 1:
        ast.increment_lineno(tree, first - 1)
    return tree
