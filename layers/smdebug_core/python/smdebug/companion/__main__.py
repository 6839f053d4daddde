"""`python -m smdebug.companion`: started by a hook, which writes the settings to its stdin."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from smdebug.companion.evaluation import Companion, report
from smdebug.companion.hanging import PATIENCE
from smdebug.companion.pipe import TrainingPipe
from smdebug.logger import get_logger

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
    place = settings["place"]
    try:
        companion = Companion(
            place, settings.get("alerts", ()), settings.get("rule_file"), settings.get("sinks", ())
        )
        companion.follow(pipe, settings.get("patience", PATIENCE))
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001 - the end of a process, which says why
        # The hook warns that the evaluation has ended early, and says how to evaluate the run.
        report(
            f"smdebug: {place} cannot be evaluated beside the training: {type(error).__name__}: {error}"
            " (SMDEBUG_LOG_LEVEL=debug shows where)"
        )
        get_logger().debug("The evaluation has failed", exc_info=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
