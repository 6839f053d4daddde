"""A plugin of pytest that imports one module with a deliberate edit (see `edits.py`)."""

from __future__ import annotations

import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from tests.simulation.defects.edits import EDITS, VARIABLE

_EDIT = EDITS[int(os.environ[VARIABLE])]
_EDITED = compile(_EDIT.applied(), str(_EDIT.path), "exec", dont_inherit=True)
_get_code = SourceFileLoader.get_code
_imported: list[str] = []


def _edited(loader: SourceFileLoader, name: str) -> CodeType | None:
    if Path(loader.path) != _EDIT.path:
        return _get_code(loader, name)
    _imported.append(name)
    return _EDITED


def pytest_unconfigure() -> None:
    """Exit with an error of its own if the module was not imported: then the test has shown nothing."""
    if not _imported:
        print(f"The test does not import {_EDIT.file}", file=sys.stderr)
        raise SystemExit(3)


SourceFileLoader.get_code = _edited  # type: ignore[method-assign, assignment]
