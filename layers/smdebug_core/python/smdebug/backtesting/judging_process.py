"""A process that judges runs: a rule that crashes, exits or hangs takes its process along and nothing else.

`main` is that process. It reads the question and then runs from one pipe, a line of JSON each, and answers to
another. It ends with the process that asks.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from smdebug.backtesting.constructing import refusal_of
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import Judged, judge
from smdebug.backtesting.question import Question
from smdebug.exceptions import SMDebugValueError
from smdebug.runs.evaluation.code_places import place_in
from smdebug.runs.evaluation.rule_process import death_of, pipes_of_parent

_PLACE_WITHIN = 2.0  # seconds
_START_WITHIN = 600.0  # seconds; that it takes long to start is no fault of a rule
_CONSTRUCTED_WITHIN = 60.0  # seconds
_AT_ONCE = 1 << 16
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessDied(Exception):
    """The process ended without an answer; the text says how."""


class TookTooLong(Exception):
    """There was no answer in time; the text is the line that was being executed."""


class JudgingProcess:
    """A process that judges one run after the other. One thread uses it."""

    def __init__(self, question: Question):
        self._unread = b""
        self._is_starting = True
        theirs_in, self._requests = os.pipe()
        self._answers, theirs_out = os.pipe()
        self._process = subprocess.Popen(  # noqa: S603 - this Python, this module
            [
                sys.executable,
                "-c",
                f"from {__name__} import main; main()",
                str(theirs_in),
                str(theirs_out),
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a rule prints is no part of the answer
            pass_fds=(theirs_in, theirs_out),
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
            },
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.memory = 0
        """How many bytes of memory it had after its last answer."""
        self._write(question.to_dict())

    def judge(self, run: FoundRun, known: str, timeout: float) -> Judged:
        """Return what it says of the run; raise `ProcessDied` or `TookTooLong`, after which it has ended."""
        answer = self._ask({"run": list(run), "known": known}, timeout)
        self.memory = answer["memory"]
        return Judged.from_dict(answer["judged"])

    def refusal(self, timeout: float) -> str:
        """Return why a rule cannot be created with its parameters, as `refusal_of` does."""
        return str(self._ask({"construct": True}, timeout)["refusal"])

    def _ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        try:
            self._write(request)
            line = self._first_line() if self._is_starting else b""
            if line is not None:
                line = self._line(time.monotonic() + timeout)
        except OSError:
            line = None
        if line is None:
            raise ProcessDied(death_of(self._process))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._requests, self._answers):
            with suppress(OSError):
                os.close(file)

    def kill(self) -> None:
        """End the process, from any thread; whoever waits for its answer learns that it has died."""
        self._process.kill()

    def _write(self, payload: Mapping[str, Any]) -> None:
        line = json.dumps(payload).encode() + b"\n"
        with suppress(BrokenPipeError):  # its end is noticed where the answer is missing
            while line:
                line = line[os.write(self._requests, line) :]

    def _first_line(self) -> bytes | None:
        try:
            line = self._line(time.monotonic() + _START_WITHIN)
        except TookTooLong:
            raise ProcessDied(f"its process did not start within {_START_WITHIN:g} s") from None
        self._is_starting = False
        return line

    def _line(self, deadline: float) -> bytes | None:
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise TookTooLong(self._place())
            read = os.read(self._answers, _AT_ONCE)
            if not read:
                return None
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _place(self) -> str:
        """Return the line that is being executed."""
        self._process.send_signal(signal.SIGUSR1)
        if select.select([self._answers], [], [], _PLACE_WITHIN)[0]:
            with suppress(ValueError, KeyError, TypeError, IndexError):
                return str(json.loads(os.read(self._answers, _AT_ONCE).splitlines()[0])["place"])
        return "native code"


def refuse_wrong_values(question: Question) -> None:
    """Raise `SMDebugValueError` for parameters with which a rule cannot be created, whatever the run.

    The rules with parameters are constructed without a run, in a process of its own. What depends on the run,
    and what ends that process or hangs, the rows say.
    """
    if all(isinstance(entry, str) or not entry["parameters"] for entry in question.rules):
        return
    process = JudgingProcess(question)
    try:
        refusal = process.refusal(min(question.timeout, _CONSTRUCTED_WITHIN))
    except (ProcessDied, TookTooLong):
        return
    finally:
        process.close()
    if refusal:
        raise SMDebugValueError(refusal)


def main() -> None:
    """Be the process: the file descriptors of its pipes and the id of its parent are its arguments."""
    from smdebug.logger import get_logger

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks, which ends this one
    requests, answers = pipes_of_parent()
    process = os.getpid()

    def answer(payload: Mapping[str, Any]) -> None:
        if os.getpid() != process:  # a copy that a rule made
            os._exit(0)
        line = json.dumps(payload).encode() + b"\n"
        while line:
            line = line[os.write(answers, line) :]

    signal.signal(signal.SIGUSR1, lambda _, frame: answer({"place": place_in(frame)}))
    answer({"ready": True})
    get_logger().setLevel("CRITICAL")
    with os.fdopen(requests, "rb") as lines:
        question = Question.from_dict(json.loads(lines.readline()))
        for number, line in enumerate(lines):
            asked = json.loads(line)
            if "construct" in asked:
                answer({"refusal": refusal_of(question)})
                continue
            judged = judge(question, FoundRun(*asked["run"]), asked["known"])
            answer({"judged": judged.to_dict(), "memory": _memory()})
            if number == 0:  # what was imported stays, so garbage is looked for without it
                gc.collect()
                gc.freeze()


def _memory() -> int:
    """Return how many bytes of memory this process has; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0
