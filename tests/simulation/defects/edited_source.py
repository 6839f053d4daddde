"""A plugin of pytest that imports one module with a deliberate edit (see `edits.py`)."""

from __future__ import annotations

import os
import sys

from tests.simulation.defects.edits import EDITS, VARIABLE

_EDIT = EDITS[int(os.environ[VARIABLE])]
_imported = _EDIT.import_it()


def pytest_unconfigure() -> None:
    """Exit with an error of its own if the module was not imported: then the test has shown nothing."""
    if not _imported:
        print(f"The test does not import {_EDIT.file}", file=sys.stderr)
        raise SystemExit(3)
