"""Runs that other tools have logged, as runs of this library: their scalars, configuration and times."""

from __future__ import annotations

from smdebug.importing.finding import FORMATS, find_runs
from smdebug.importing.records import Found, ImportedRun
from smdebug.importing.writing import import_run

__all__ = ["FORMATS", "Found", "ImportedRun", "find_runs", "import_run"]
