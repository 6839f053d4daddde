"""`python -m smdebug.companion`: started by a hook, which writes the settings to its stdin."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from smdebug.companion.evaluation import Companion
from smdebug.companion.pipe import TrainingPipe

NICENESS = 10


def main() -> int:
    """Evaluate the run until its training has ended."""
    with suppress(OSError):
        os.nice(NICENESS)
    pipe = TrainingPipe(sys.stdin.buffer)
    settings = json.loads(pipe.first_line() or b"{}")
    if "place" not in settings:
        print("smdebug.companion is started by a hook with evaluate='here'", file=sys.stderr)
        return 2
    companion = Companion(settings["place"], settings.get("alerts", ()))
    with suppress(KeyboardInterrupt):
        companion.follow(pipe)
    return 0


if __name__ == "__main__":
    sys.exit(main())
