"""The exit codes of every command."""

from __future__ import annotations

from typing import Final

PASSED: Final = 0
FOUND: Final = 1
USAGE_ERROR: Final = 2
FAILED: Final = 3
INTERNAL_ERROR: Final = 4
# Of `smdebug gate` alone.
NOT_CHECKED: Final = 5
STALE: Final = 6
NOT_ENDED: Final = 7
INTERRUPTED: Final = 130
