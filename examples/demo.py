"""`make demo`: see local_aws/demo.py, which this runs from wherever it is called."""

import os
import signal
import sys
from pathlib import Path


def end_at_once(*_: object) -> None:
    """Nothing has begun yet: while modules load, an exception would show where."""
    os.write(2, b"Interrupted. Nothing was left behind.\n")
    os._exit(130)


if __name__ == "__main__":
    for stopping in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stopping, end_at_once)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from local_aws.demo import main

    sys.exit(main())
