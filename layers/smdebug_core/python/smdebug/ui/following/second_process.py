"""Another process that makes the charts of some hundred steps at a time, for the one that serves pages.

`python -m smdebug.ui.following.second_process PATH` is that process. It gets what the index files of the
steps say, reads their event files, and ends when its input does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple

from smdebug.trials.stored.worker_steps import Workers
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.following.sent_steps import SentSteps

_READY = b"ready\n"


class Task(NamedTuple):
    """Steps to read, and what their index files say."""

    steps: Sequence[int]
    at: Mapping[int, Workers]
    """These steps, and those that have the layouts of the run."""
    num_workers: int
    """Of the run: of sharded tensors, charts show the whole if all of them save."""
    per_stretch: Mapping[str, int]


class Part(NamedTuple):
    """The charts of the steps up to `last`."""

    last: int
    charts: Charts


class SecondProcess:
    """Has a process read steps, in order. One thread uses it."""

    def __init__(self, path: str):
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._answers: SimpleQueue[Part | None] = SimpleQueue()
        self._parts: deque[Part] = deque()
        self.is_ready = False
        self.has_failed = False
        process = _started(path)
        self.close = weakref.finalize(self, _end, process, self._tasks)
        """End the process."""
        threading.Thread(
            target=_talk,
            args=(process, self._tasks, self._answers),
            name="smdebug-ui-second-process",
            daemon=True,
        ).start()

    def send(self, task: Task) -> None:
        """Have these steps read after those sent before."""
        self._tasks.put(task)

    def wait(self, seconds: float) -> None:
        """Wait until there is an answer, or for so long."""
        if not self._parts and not self.has_failed:
            self._take(seconds)

    def next_part(self) -> Part | None:
        """Return the answer to the next task; None if there is none yet."""
        self.notice()
        return self._parts.popleft() if self._parts else None

    def notice(self) -> None:
        """Notice what the process has done."""
        while self._take(None):
            pass

    def _take(self, seconds: float | None) -> bool:
        """Take over an answer; return whether there was one."""
        try:
            part = self._answers.get(block=seconds is not None, timeout=seconds)
        except Empty:
            return False
        if part is None:
            self.has_failed = True
        elif not self.is_ready:
            self.is_ready = True
        else:
            self._parts.append(part)
        return True


def serve(path: str, source: IO[bytes], to: IO[bytes]) -> None:
    """Answer each task until there is none."""
    run = SentSteps(path)
    to.write(_READY)
    to.flush()
    while True:
        try:
            task = pickle.load(source)  # noqa: S301 - from the process that started this one
        except EOFError:
            return
        run.show(task.at, task.num_workers)
        charts = Charts(task.per_stretch)
        for step in task.steps:
            charts.read(run, step)
        charts.settle()
        pickle.dump(Part(task.steps[-1], charts), to, pickle.HIGHEST_PROTOCOL)
        to.flush()


def _started(path: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this Python, this module
        [sys.executable, "-m", "smdebug.ui.following.second_process", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # The same modules, also where a program or a test has added their folders.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C ends the server, which ends this
    )


def _talk(
    process: subprocess.Popen[bytes],
    tasks: SimpleQueue[Task | None],
    answers: SimpleQueue[Part | None],
) -> None:
    """Send the tasks and receive the answers, in a thread, as either may take its time."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() == _READY:
            answers.put(Part(-1, Charts()))
            while (task := tasks.get()) is not None:
                pickle.dump(task, process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                answers.put(pickle.load(process.stdout))  # noqa: S301 - from our own process
    except (OSError, EOFError, ValueError, pickle.PickleError):
        pass  # it has ended
    finally:
        answers.put(None)
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                pipe.close()


def _end(process: subprocess.Popen[Any], tasks: SimpleQueue[Task | None]) -> None:
    tasks.put(None)
    process.kill()


if __name__ == "__main__":
    # Not as `__main__`: the process that gets the answers must know their types.
    from smdebug.ui.following import second_process

    second_process.serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
