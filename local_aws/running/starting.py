"""Starts processes of handlers: on Linux as forks of a template, which has imported what they need.

A process of its own would import boto3, numpy and the handler each time, which takes longer than most
events. Elsewhere that is what happens: on macOS system libraries do not work in a forked process.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_FORKS = sys.platform == "linux"


@dataclass(frozen=True)
class Start:
    """What a process of a handler is started with."""

    handler: str
    code: Path  # its working folder, and the first place that it imports from
    path: Sequence[Path]
    folder: Path  # the stack's: what has its name in the environment ends with the stack
    clock: Path
    variables: Mapping[str, str]


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    pid: int
    stdout: IO[bytes] | None

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class ProcessStarter:
    """Starts processes from one thread that lives as long as the stack.

    A process that asks to die with its parent dies with the thread that started it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "process-starter")
        self._templates: dict[tuple[Path, ...], _Template] = {}

    def start(self, start: Start) -> Process:
        return self._thread.submit(self._start, start).result()

    def close(self) -> None:
        """End the templates, and with them the processes that are left."""
        self._thread.shutdown(wait=False)
        for template in list(self._templates.values()):  # one that is being started dies with the thread
            template.close()

    def _start(self, start: Start) -> Process:
        if not _FORKS:
            return _started(start, dict(start.variables), start.handler, stdout=subprocess.PIPE)
        place = tuple(start.path)
        while True:
            template = self._templates.get(place)
            if template is None:
                template = self._templates[place] = _Template(start)
            process = template.fork(start)
            if process is not None:
                return process
            self._templates.pop(place).close()  # it was killed


class _Template:
    """A process that forks the handlers of one function asset and its layers."""

    def __init__(self, start: Start):
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = ("PATH", "LANG", "TZ", "OPENBLAS_NUM_THREADS")
        variables = {name: start.variables[name] for name in kept if name in start.variables}
        variables |= {"HOME": str(start.folder), "TMPDIR": str(start.folder)}
        with other:
            arguments = ("--fork", str(other.fileno()))
            self._process = _started(start, variables, *arguments, pass_fds=(other.fileno(),))

    def fork(self, start: Start) -> Process | None:
        """Return a process of the handler; None if the template has ended."""
        output, its_output = os.pipe()
        ended, its_end = os.pipe()
        request = {"handler": start.handler, "variables": {**start.variables, "PYTHONPATH": _path(start)}}
        process = 0
        try:
            with suppress(OSError):
                socket.send_fds(self._requests, [json.dumps(request).encode()], [its_output, its_end])
                process = int(self._requests.recv(64) or 0)
        finally:
            os.close(its_output)
            os.close(its_end)
        if not process:
            os.close(output)
            os.close(ended)
            return None
        return _Forked(process, os.fdopen(output, "rb"), ended)

    def close(self) -> None:
        self._requests.close()
        self._process.kill()
        self._process.wait()


class _Forked:
    """A process whose parent is the template."""

    def __init__(self, pid: int, stdout: IO[bytes], ended: int):
        self.pid = pid
        self.stdout: IO[bytes] | None = stdout
        self._ended = ended
        self._code: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code as `Popen` does, or None while the process runs."""
        with self._lock:
            if self._code is None and select.select([self._ended], [], [], 0)[0]:
                self._read()
        return self._code

    def wait(self) -> int:
        """Wait until the process has ended; return its exit code."""
        with self._lock:
            if self._code is None:
                self._read()
        assert self._code is not None
        return self._code

    def _read(self) -> None:
        # Nothing but the end of the pipe: the template was killed, and its processes with it.
        self._code = int(os.read(self._ended, 16) or -9)
        os.close(self._ended)


def _started(
    start: Start,
    variables: Mapping[str, str],
    *arguments: str,
    stdout: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    # -S: without site-packages of this interpreter or virtual environment; -s: nor the user's
    command = [sys.executable, "-S", "-s", "-P", str(BOOTSTRAP), str(os.getpid()), str(start.clock)]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [*command, *arguments],
        cwd=start.code,
        env={**variables, "PYTHONPATH": _path(start)},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    )


def _path(start: Start) -> str:
    return os.pathsep.join(map(str, start.path))
