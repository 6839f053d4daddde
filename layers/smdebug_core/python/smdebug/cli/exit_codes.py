"""The exit codes of every command."""

from __future__ import annotations

from typing import Final

PASSED: Final = 0
FOUND: Final = 1
USAGE_ERROR: Final = 2
FAILED: Final = 3
INTERNAL_ERROR: Final = 4
INTERRUPTED: Final = 130
