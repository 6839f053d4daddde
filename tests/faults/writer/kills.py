"""Real processes that save to a folder and are killed by SIGKILL at one of their calls of the system.

A process that has imported everything forks a child for each of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
STEPS = 6
_CALLS = ("open", "writev", "rename", "unlink", "close", "makedirs")


class Killed(NamedTuple):
    """What was left by a process that was killed at its call of that number."""

    call: int
    steps: int
    problems: list[str]


def killed_runs(count: int) -> list[Killed]:
    """Kill so many processes, each at another call; judge what is there, and what a later attempt leaves."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.faults.writer.kills", folder, str(count)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"processes could not be killed:\n{ended.stdout}{ended.stderr}")
        return [Killed(*run) for run in json.loads(ended.stdout.splitlines()[-1])]


class _Counted:
    """`os` for the storage of folders: kills the process before a call, or after it."""

    def __init__(self, dies_at: int):
        self._left = dies_at
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in _CALLS:
            return real

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._left:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return counted


def _in_child(work: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def _train(place: str, attempt: int, dies_at: int, note: str = "") -> None:
    import smdebug
    from smdebug.storage import file_writing, folder
    from tests.faults.writer.values import values_of

    counted = _Counted(dies_at)
    file_writing.os = folder.os = counted  # type: ignore[assignment]
    save_config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(place, include_collections=["weights"], save_config=save_config) as hook:
        for step in range(STEPS if attempt == 0 else STEPS - 2):
            with hook.step():
                hook.record_all(values_of(attempt, 0, step, 70_000))
    if note:
        Path(note).write_text(str(counted.calls))


def _judged(place: str, attempts: int) -> tuple[int, list[str]]:
    import numpy as np

    from smdebug.storage import open_storage
    from tests.faults.writer.reading import read
    from tests.faults.writer.values import values_of

    reading = read(open_storage(place))
    problems = list(reading.problems)
    for step, workers in reading.seen.items():
        for values in workers.values():
            saved = [values_of(attempt, 0, step, 70_000) for attempt in range(attempts)]
            if not any(
                values.keys() == known.keys()
                and all(np.array_equal(values[name], known[name]) for name in known)
                for known in saved
            ):
                problems.append(f"step {step} shows what was not saved")
    steps = sorted(reading.seen)
    if steps != list(range(len(steps))):
        problems.append(f"the steps {steps} are not the first ones")
    if attempts > 1 and (not reading.has_ended or reading.gaps or reading.not_closed):
        problems.append(f"the later attempt is not whole: {reading.gaps} {reading.not_closed}")
    return len(steps), problems


def _main(folder: str, count: int) -> None:
    note = str(Path(folder, "calls"))
    if _in_child(lambda: _train(str(Path(folder, "whole")), 0, 0, note)):
        raise SystemExit("a process that is not killed fails")
    calls = int(Path(note).read_text())
    runs = []
    for number in range(count):
        call = 1 + number * calls // count
        place = str(Path(folder, f"run{number}"))
        status = _in_child(lambda place=place, call=call: _train(place, 0, call))  # type: ignore[misc]
        steps, problems = _judged(place, 1)
        if not os.WIFSIGNALED(status) and call < calls - 5:
            problems.append("it was not killed")
        if not Path(place, "training_job_end.ts").exists():
            if _in_child(lambda place=place: _train(place, 1, 0)):  # type: ignore[misc]
                problems.append("the later attempt fails")
            else:
                problems += [f"resumed: {problem}" for problem in _judged(place, 2)[1]]
        runs.append((call, steps, problems))
    print(json.dumps(runs))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
