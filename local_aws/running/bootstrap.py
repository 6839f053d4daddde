"""The entry point of a handler's process: it binds itself to its parent, then runs Lambda's client.

    python -S -s -P bootstrap.py <pid of the parent> <file of the clock> <handler>

Only the standard library is imported before the runtime client takes over.
"""

import ctypes
import mmap
import os
import struct
import sys
import time


def die_with(parent: int) -> None:
    """End this process when its parent ends, where the system supports that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != parent:
        os._exit(1)


def follow(clock: str) -> None:
    """Make `time.time` return the time of the local stack, which tests can move."""
    real = time.time
    with open(clock, "rb") as file:  # noqa: PTH123 - pathlib would be imported before the handler asks
        offset = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    time.time = lambda: real() + struct.unpack_from("d", offset)[0]


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    follow(sys.argv[2])
    from awslambdaric import __main__ as client

    sys.argv = ["awslambdaric", sys.argv[3]]
    sys.exit(client.main(sys.argv))
