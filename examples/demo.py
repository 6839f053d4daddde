"""`make demo`: runs local_aws/demo/main.py, from any folder."""

import os
import signal
import sys
from pathlib import Path


def exit_at_once(*_: object) -> None:
    """Exit without a traceback: nothing has started while modules load."""
    os.write(2, b"Interrupted. Nothing was left behind.\n")
    os._exit(130)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, exit_at_once)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from local_aws.demo.main import main

    sys.exit(main())
