"""The entry point of a handler's process: it binds itself to its parent, then runs Lambda's client.

    python -S -s -P bootstrap.py <pid of the parent> <file of the clock> <handler>
    python -S -s -P bootstrap.py <pid of the parent> <file of the clock> --fork <socket>

The second form is a template: it imports what handlers need, then forks a process for each start that is
requested through the socket (`starting.py` is the other end). Only the standard library is imported before
the clock is followed.
"""

import ctypes
import importlib
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any

# What takes long to import. Lambda's client must not be here: its library keeps the address that it finds in
# the environment when it is loaded.
PACKAGES = ("boto3", "boto3.dynamodb.conditions", "s3transfer.manager", "simplejson", "numpy")
LARGEST_REQUEST = 1 << 17  # a function's variables have 4 KB


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


def run(handler: str) -> None:
    """Run Lambda's client with that handler until the process is killed."""
    from awslambdaric import __main__ as client

    sys.argv = ["awslambdaric", handler]
    sys.exit(client.main(sys.argv))


class Template:
    """Forks processes of handlers, and reports how each ended on a pipe of its own."""

    def __init__(self, requests: socket.socket):
        self._requests = requests
        self._ended: dict[int, int] = {}  # process -> its pipe
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Fork on request, until the other end of the socket is closed."""
        for package in PACKAGES:
            _import(package)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # to be woken by it
        signal.set_wakeup_fd(self._wake)
        requests = self._requests.fileno()
        while True:
            ready, _, _ = select.select([requests, self._woken], [], [])
            if self._woken in ready:
                with suppress(BlockingIOError):
                    os.read(self._woken, 512)
                self._report()
            if requests in ready:
                request, pipes, _, _ = socket.recv_fds(self._requests, LARGEST_REQUEST, 2)
                if not request:
                    return
                self._fork(json.loads(request), *pipes)

    def _fork(self, request: dict[str, Any], output: int, ended: int) -> None:
        # Once for all processes of this handler. An error recurs in the process, whose client reports it.
        _import(request["handler"].rpartition(".")[0])
        template = os.getpid()
        process = os.fork()
        if process == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            die_with(template)
            os.dup2(output, 1)
            os.dup2(output, 2)
            self._requests.close()
            for end in (self._woken, self._wake, output, ended, *self._ended.values()):
                os.close(end)
            os.environ.clear()
            os.environ.update(request["variables"])
            run(request["handler"])
        os.close(output)
        self._ended[process] = ended
        self._requests.send(str(process).encode())

    def _report(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                process, status = found
                ended = self._ended.pop(process)
                with suppress(BrokenPipeError):
                    os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(ended)


def _import(module: str) -> None:
    with suppress(Exception):
        importlib.import_module(module)


def main(parent: str, clock: str, handler: str, *rest: str) -> None:
    """Run the handler, or fork processes on request."""
    die_with(int(parent))
    follow(clock)
    if handler == "--fork":
        Template(socket.socket(fileno=int(rest[0]))).serve()
    else:
        run(handler)


if __name__ == "__main__":
    main(*sys.argv[1:])
