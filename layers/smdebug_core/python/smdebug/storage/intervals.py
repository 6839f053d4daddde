"""How often a run in progress is read for new steps."""

from __future__ import annotations

from typing import Final

IN_FOLDER: Final = 1.0  # seconds
IN_BUCKET: Final = 10.0  # every look costs a request
