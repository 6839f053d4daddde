"""Clears up behind a local stack, however it ended: it waits for the pipe from its parent to close.

    python -S janitor.py <the folder to remove>

What was started below the folder has its name in the environment (HOME, TMPDIR), and is ended, too.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def main(folder: str) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for _ in range(20):
        left = started_below(folder)
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not left:
            break
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def started_below(folder: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"={folder}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return [one for one in found if one != os.getpid()]


if __name__ == "__main__":
    main(sys.argv[1])
