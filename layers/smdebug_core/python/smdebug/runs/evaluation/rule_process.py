"""A rule in a process of its own: code of a user's file may end, crash or fork its process, and no other.

`main` is that process. It reads requests from one pipe and answers to another, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from queue import Empty, SimpleQueue
from typing import IO, Any

from smdebug.exceptions import DamagedFile, SMDebugError, SMDebugValueError
from smdebug.rules.memory.state import RuleState
from smdebug.rules.rule import Rule
from smdebug.runs.evaluation.code_places import place_in
from smdebug.runs.evaluation.rule_results import PartialResult, StepFindings
from smdebug.runs.evaluation.rule_steps import LocalRule, RuleRequest, rule_class
from smdebug.service.records import RuleConfiguration

_LOOK_EVERY = 0.2  # seconds: whether a process that does not answer still lives
_PLACE_WITHIN = 2.0  # seconds
_PRINTED_WITHIN = 1.0  # seconds
_LOOK_FOR_PARENT_EVERY = 1.0  # seconds
_AT_ONCE = 1 << 16


class RuleProcess:
    """The same as a `LocalRule`, in another process. One thread uses it.

    If the process ends without an answer, the rule has failed.
    """

    def __init__(self, request: RuleRequest):
        self.rule_type: type[Rule] = rule_class(request.configuration.rule, request.file)
        self._unread = b""
        self._step: int | None = None
        self.is_starting = True
        """Whether it cannot be asked for its place yet."""
        self._place: SimpleQueue[str] = SimpleQueue()
        self._process, self._requests, self._answers, printers = _started()
        pipes = (self._requests, self._answers)
        self.close = weakref.finalize(self, _end, self._process, pipes, printers)
        """End the process."""
        answer = self._ask("construct", _request_payload(request))
        if answer is None:
            raise SMDebugValueError(f"{request.configuration.name}: {death_of(self._process)}")
        if "refused" in answer:
            raise SMDebugValueError(answer["refused"])
        self.selection: str = answer["selection"]

    def evaluate(self, steps: Sequence[int], result: PartialResult) -> None:
        """Evaluate the rule at these steps, in order, and add the outcomes to `result`."""
        self._add(self._ask("evaluate", list(steps)), result)

    def end(self, step: int, result: PartialResult) -> None:
        """Add what the rule finds at the end of the run, after this last step."""
        self._add(self._ask("end", step), result)

    def state(self) -> RuleState:
        """Return the rule's state; empty if its process has died, which its result says."""
        answer = self._ask("state", None)
        if answer is None:
            return RuleState(b"")
        if "refused" in answer:
            raise SMDebugValueError(answer["refused"])
        return RuleState(b64decode(answer["data"]), tuple(answer["left_out"]))

    def restore(self, state: RuleState) -> None:
        """Continue from this state."""
        self._ask("restore", b64encode(state.data).decode())

    def _add(self, answer: Mapping[str, Any] | None, result: PartialResult) -> None:
        if answer is None:
            where = "" if self._step is None else f"at step {self._step}: "
            result.error = where + death_of(self._process)
        else:
            result.join(_result(answer))

    def _ask(self, what: str, payload: Any) -> Mapping[str, Any] | None:
        """Return the answer to a request; None if the process has died."""
        _busy.append(self)
        try:
            _write(self._requests, {what: payload})
            while (line := self._line()) is not None:
                answer: dict[str, Any] = json.loads(line)
                if "ready" in answer:
                    self.is_starting = False
                elif "at" in answer:
                    self._step = answer["at"]
                elif "place" in answer:
                    self._place.put(answer["place"])
                else:
                    self._step = None
                    return answer
        except OSError:  # it has gone
            pass
        finally:
            _busy.remove(self)
        return None

    def _line(self) -> bytes | None:
        """Return the next line; None if the process ended before it."""
        while b"\n" not in self._unread:
            # A copy that the rule left behind may hold the pipe open.
            has_ended = self._process.poll() is not None
            if not select.select([self._answers], [], [], 0 if has_ended else _LOOK_EVERY)[0]:
                if has_ended:
                    return None
                continue
            read = os.read(self._answers, _AT_ONCE)
            if not read:
                return None
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def place(self) -> str:
        """Return the line of the rule that is being executed; any thread may ask."""
        if self.is_starting:  # the signal would end it
            return f"the start of the process of {self.rule_type.__name__}"
        self._process.send_signal(signal.SIGUSR1)
        try:
            return self._place.get(timeout=_PLACE_WITHIN)
        except Empty:
            return f"step {self._step} of {self.rule_type.__name__}, in native code"


def death_of(process: subprocess.Popen[Any]) -> str:
    """Return in words how a process ended that owes an answer."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    code = process.returncode
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; it may need more memory"
    return f"its process ended without an answer (exit code {code})"


_busy: list[RuleProcess] = []


def busy_place() -> str | None:
    """Return the line that the rule is at which this process waits for; None if it waits for none."""
    return next((process.place() for process in _busy[:1]), None)


def is_starting() -> bool:
    """Return whether this process waits for the process of a rule to start."""
    return any(process.is_starting for process in _busy[:1])


def serve(requests: int, answers: int) -> None:
    """Answer each request until there is none."""
    process = os.getpid()

    def answer(payload: Mapping[str, Any]) -> None:
        if os.getpid() != process:  # a copy that the rule made while it was constructed
            os._exit(0)
        _write(answers, payload)

    signal.signal(signal.SIGUSR1, lambda _, frame: answer({"place": place_in(frame)}))
    answer({"ready": True})
    rule: LocalRule | None = None
    for what, payload in _requests_from(requests):
        try:
            if rule is None:
                rule = LocalRule(_request(payload))
                answer({"selection": rule.selection})
            elif what == "state":
                state = rule.state()
                data = b64encode(state.data).decode()
                answer({"data": data, "left_out": list(state.left_out)})
            elif what == "restore":
                rule.restore(RuleState(b64decode(payload)))
                answer({})
            else:
                result = PartialResult()
                for step in payload if what == "evaluate" else [payload]:
                    answer({"at": step})
                    if what == "evaluate":
                        rule.evaluate([step], result)
                    else:
                        rule.end(step, result)
                    if result.is_over:
                        break
                answer(_payload(result, rule.damaged_files))
        except SMDebugError as error:
            answer({"refused": str(error)})


def _requests_from(file: int) -> Iterator[tuple[str, Any]]:
    with os.fdopen(file, "rb") as lines:
        for line in lines:
            yield from json.loads(line).items()


def _write(file: int, payload: Mapping[str, Any]) -> None:
    line = json.dumps(payload).encode() + b"\n"
    while line:
        line = line[os.write(file, line) :]


# The process


def _started() -> tuple[subprocess.Popen[str], int, int, list[threading.Thread]]:
    """Start the process; return it with the ends of the pipes, and the threads that print what it prints."""
    theirs_in, requests = os.pipe()
    answers, theirs_out = os.pipe()
    process = subprocess.Popen(  # noqa: S603 - this Python, this module
        [
            sys.executable,
            "-c",
            f"from {__name__} import main; main()",
            str(theirs_in),
            str(theirs_out),
            str(os.getpid()),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=(theirs_in, theirs_out),
        # The same modules, also where a program or a test has added their folders.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    os.close(theirs_in)
    os.close(theirs_out)
    printers = [
        threading.Thread(target=_print, args=which, name="smdebug-rule-prints", daemon=True)
        for which in ((process.stdout, "stdout"), (process.stderr, "stderr"))
    ]
    for printer in printers:
        printer.start()
    return process, requests, answers, printers


def _print(printed: IO[str], to: str) -> None:
    """Print what the process prints as if the rule had printed it here."""
    with printed:
        for line in printed:
            print(line, end="", file=getattr(sys, to), flush=True)


def _end(process: subprocess.Popen[str], files: tuple[int, ...], printers: list[threading.Thread]) -> None:
    for file in files:
        os.close(file)
    process.kill()
    process.wait(10)
    for printer in printers:
        printer.join(_PRINTED_WITHIN)  # a copy that the rule left behind may hold the pipe open


def main() -> None:
    """Be the process: the file descriptors of its pipes and the id of its parent are its arguments."""
    from smdebug.logger import get_logger

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once; its parent reports that
    get_logger().setLevel("CRITICAL")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    serve(*pipes_of_parent())


def pipes_of_parent() -> tuple[int, int]:
    """Return the file descriptors that `main` was given, and end with the parent from now on."""
    requests, answers, parent = map(int, sys.argv[1:4])
    threading.Thread(target=_end_with, args=[parent], name="smdebug-parent", daemon=True).start()
    return requests, answers


def _end_with(parent: int) -> None:
    """End when the process that asks has ended: a rule that hangs would never notice."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT_EVERY)
    os._exit(1)


# What the two tell each other


def _request_payload(request: RuleRequest) -> dict[str, Any]:
    return {**vars(request), "configuration": _fields_of(request.configuration)}


def _fields_of(configuration: RuleConfiguration) -> dict[str, Any]:
    return {field.name: getattr(configuration, field.name) for field in fields(configuration)}


def _request(payload: Mapping[str, Any]) -> RuleRequest:
    of_rule = payload["configuration"]
    configuration = RuleConfiguration(**{**of_rule, "other_trials": tuple(of_rule["other_trials"])})
    return RuleRequest(**{**payload, "configuration": configuration})


def _payload(result: PartialResult, damaged: Mapping[str, SMDebugError]) -> dict[str, Any]:
    problems = {
        file: error.problem if isinstance(error, DamagedFile) else str(error)
        for file, error in damaged.items()
    }
    found = [findings.to_dict() for findings in result.found]
    return {**vars(result), "found": found, "damaged_files": problems}


def _result(payload: Mapping[str, Any]) -> PartialResult:
    found = [
        StepFindings(**{**findings, "findings": tuple(findings["findings"])}) for findings in payload["found"]
    ]
    damaged: dict[str, SMDebugError] = {
        file: DamagedFile(file, problem) for file, problem in payload["damaged_files"].items()
    }
    checked = None if payload["checked"] is None else tuple(payload["checked"])
    read = {"found": found, "damaged_files": damaged, "checked": checked}
    return PartialResult(**{**payload, **read})
