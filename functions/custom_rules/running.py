"""Running a custom rule in a child process with limits, whose output is read only as data.

The function that does this may only log, and no rule makes it fail: a rule that crashes, never returns,
or answers nonsense has an outcome, too.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from functions.custom_rules.jobs import LARGEST_ANSWER, MEMORY_MB, SECONDS
from functions.telemetry import log

CHILD = Path(__file__).with_name("child.py")
LARGEST_LOG = 100_000  # bytes that are kept of what a rule prints in one job
LONGEST_LINE = 4_000
PROCESSES = 128  # that the rule may start, where the system counts them
OWN_MEMORY_MB = 64  # left for this process to grow
_CHECK_EVERY = 0.05  # seconds
_LAST_WORDS = 0.5
_MARK = b"\x1e"  # begins a line with the step of the lines after it
_LEVELS = frozenset(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
_LET_KNOW = (
    "PATH",
    "LD_LIBRARY_PATH",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_CA_BUNDLE",
)


class Died(Exception):
    """The rule's process ended before it answered; the message says how."""


class TookTooLong(Died):
    """It was ended, as it did not answer in time."""


def run(
    job: Mapping[str, Any],
    *,
    memory_mb: float = MEMORY_MB,
    seconds: float = SECONDS,
    file: str | None = None,
) -> dict[str, Any]:
    """Run the job and return its answer, even if the rule's process dies. `file`: code deployed with this."""
    output = RuleOutput(job)
    folder = Path(tempfile.mkdtemp(prefix="rule-"))
    before = set(descendants())
    _keep_to_ourselves()
    child: subprocess.Popen[bytes] | None = None
    try:
        limits = _limits(job, memory_mb, seconds, folder)
        child, answers = _started({**job, "limits": limits, "file": file}, folder)
        _read_output(child, answers, output, limits, before)
    except Died as death:
        output.died = str(death)
        output.too_long = isinstance(death, TookTooLong) and "task" in job
    except Exception as problem:  # noqa: BLE001 - every failure is an outcome
        output.died = f"it could not be run ({type(problem).__name__}: {problem})"
    finally:
        _end(child, before)
        shutil.rmtree(folder, ignore_errors=True)
    output.flush()
    return output.answer()


class RuleOutput:
    """The output of the rule's process so far."""

    def __init__(self, job: Mapping[str, Any]):
        rule = job["rule"]
        self._about = {"run": job["run"], "rule": rule["name"]}
        self._steps: list[dict[str, Any]] = []
        self._done: dict[str, Any] | None = None
        self._answers = b""
        self._bytes = 0
        self._lines: dict[str, bytes] = {}
        self._logged_bytes = 0
        self._at: dict[str, int | None] = {}  # the step of each stream's next lines
        self.step: int | None = None
        self.died: str | None = None
        self.later = False
        self.too_long = False

    @property
    def is_done(self) -> bool:
        return self._done is not None

    def take(self, data: bytes) -> None:
        """Add a piece of the answers."""
        self._bytes += len(data)
        if self._bytes > LARGEST_ANSWER:
            raise Died(f"it answered with more than {LARGEST_ANSWER} bytes")
        *lines, self._answers = (self._answers + data).split(b"\n")
        for line in lines:
            if not self.is_done:
                self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        try:
            message = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError):
            message = None
        match message:
            case {"begun": int(step)}:
                self.step = step
            case {"unavailable": str(message)}:
                self.later = True
                raise Died(f"the run could not be read: {message}")
            case {"done": dict(done)}:
                self._done = done
            case {"step": _, "outcome": _}:
                self._steps.append(message)
            case _:
                raise Died("it answered with something that is not an answer")

    def add_printed(self, stream: str, data: bytes) -> None:
        """Add a piece of what the rule prints, and log the lines that it completes."""
        if self._logged_bytes > LARGEST_LOG:
            return
        *lines, rest = (self._lines.get(stream, b"") + data).split(b"\n")
        self._lines[stream] = rest
        for line in lines:
            self._log_line(line, stream)
        if len(rest) > LONGEST_LINE:
            self._lines[stream] = b""
            self._log_line(rest, stream)

    def flush(self) -> None:
        """Log what was printed after the last end of a line."""
        for stream, rest in self._lines.items():
            if rest:
                self._log_line(rest, stream)

    def _log_line(self, line: bytes, stream: str) -> None:
        if self._logged_bytes > LARGEST_LOG:
            return
        self._logged_bytes += len(line)
        if line.startswith(_MARK):
            self._at[stream] = _number_in(line)
            return
        about: dict[str, Any] = {**self._about, "step": self._at.get(stream)}
        if self._logged_bytes > LARGEST_LOG:
            log("The rule prints more than is kept; the rest is left out", level="WARNING", **about)
            return
        text = line[:LONGEST_LINE].decode("utf-8", "replace")
        payload = _as_json(text)
        level = payload.get("level")
        about["level"] = level if level in _LEVELS else "ERROR" if stream == "stderr" else "INFO"
        message = payload.get("message")
        log(message if isinstance(message, str) else text, **about)

    def answer(self) -> dict[str, Any]:
        """Return the answer for the commit."""
        answer: dict[str, Any] = {"steps": self._steps, **(self._done or {})}
        if self.died is not None:
            # Without the rule's state, none of its outcomes counts.
            answer = {"steps": [], "died": {"step": self.step, "message": self.died[:1000]}}
            if self.later:
                answer["died"]["later"] = True
            if self.too_long:
                answer["died"]["too_long"] = True
            about = {**self._about, "step": self.step, "problem": self.died}
            log("The rule's process died", level="ERROR", **about)
        try:
            text = json.dumps(answer, allow_nan=False)
        except (ValueError, RecursionError):
            text = ""
        if not text or len(text) > LARGEST_ANSWER:
            message = "it answered with something that is not an answer"
            return {"steps": [], "died": {"step": self.step, "message": message}}
        return answer


# The process


def _started(job: Mapping[str, Any], folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the child with the job on its standard input; return it and the pipe of its answers."""
    answers, end = os.pipe()
    path = [place for place in sys.path if place and not _is_standard(place)]
    environment = {
        **{name: os.environ[name] for name in _LET_KNOW if name in os.environ},
        **(job.get("credentials") or {}),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "AWS_EC2_METADATA_DISABLED": "true",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "SMDEBUG_LOG_LEVEL": "info",
    }
    without_credentials = {key: value for key, value in job.items() if key != "credentials"}
    try:
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps({**without_credentials, "path": path}).encode())
            given.seek(0)
            child = subprocess.Popen(  # noqa: S603 - our own interpreter and script
                [sys.executable, "-I", "-S", "-B", str(CHILD), str(end)],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(end,),
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
    except BaseException:
        os.close(answers)
        raise
    finally:
        os.close(end)
    return child, answers


def _limits(job: Mapping[str, Any], memory_mb: float, seconds: float, folder: Path) -> dict[str, float]:
    asked = job.get("limits") or ({"seconds": job["task"]["question"]["timeout"]} if "task" in job else {})
    limits = {
        "work": float(asked.get("work", seconds)),
        "seconds": min(seconds, float(asked.get("seconds", seconds))),
        "memory_mb": min(memory_mb, float(asked.get("memory_mb", memory_mb))),
        "file_bytes": max(1 << 20, shutil.disk_usage(folder).free - (16 << 20)),
    }
    if os.geteuid() != 0:  # the system sets no limit for root
        limits["processes"] = _tasks_of_user() + PROCESSES
    return limits


def _read_output(
    child: subprocess.Popen[bytes],
    answers: int,
    output: RuleOutput,
    limits: Mapping[str, float],
    before: set[int],
) -> None:
    """Read the output until the child is done; `Died` if it ends early or exceeds a limit."""
    until = time.monotonic() + limits["seconds"]
    assert child.stdout is not None
    assert child.stderr is not None
    takers: dict[int, Callable[[bytes], None]] = {
        answers: output.take,
        child.stdout.fileno(): lambda data: output.add_printed("stdout", data),
        child.stderr.fileno(): lambda data: output.add_printed("stderr", data),
    }
    next_check = last_words = 0.0
    with selectors.DefaultSelector() as selector:
        try:
            for file in takers:
                os.set_blocking(file, False)
                selector.register(file, selectors.EVENT_READ)
            while True:
                has_ended = child.poll() is not None
                ready = [key for key, _ in selector.select(0 if has_ended else _CHECK_EVERY)]
                for key in ready:
                    data = os.read(key.fd, 65_536)
                    if data:
                        takers[key.fd](data)
                    else:
                        selector.unregister(key.fd)
                now = time.monotonic()
                if has_ended or output.is_done:  # a process that it started may still hold the pipes
                    last_words = last_words or now + _LAST_WORDS
                    if not ready or now > last_words:
                        break
                elif now > until:
                    raise TookTooLong(f"it did not answer within {limits['seconds']:g} s")
                if now >= next_check and not has_ended:
                    next_check = now + _CHECK_EVERY
                    used = sum(map(memory_of, set(descendants()) - before)) / (1 << 20)
                    if used > limits["memory_mb"]:
                        raise Died(f"it used more than {limits['memory_mb']:.0f} MB of memory")
        finally:
            os.close(answers)
            child.stdout.close()
            child.stderr.close()
    if not output.is_done:
        raise Died(_how_it_ended(child.wait()))


def _how_it_ended(code: int) -> str:
    if code == -signal.SIGXCPU:
        return "it used more processor time than it may"
    if code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name} before it had answered"
    return f"it ended with exit code {code} before it had answered"


def _end(child: subprocess.Popen[bytes] | None, before: set[int]) -> None:
    """End the process and all its descendants, also those that left its process group."""
    if child is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()
    for _ in range(100):
        left = set(descendants()) - before
        if not left:
            return
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        for process in left:
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.01)


def descendants() -> Iterator[int]:
    """Yield the descendants of this process."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            stat = (folder / "stat").read_bytes()
            parents[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
        yield from more


def memory_of(process: int) -> int:
    """Return the bytes of memory that a process does not share."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                return int(line.split()[1]) << 10
    return 0


def memory_left(of_mb: float) -> float:
    """Return how much of the function's memory is left for the rule, in MB."""
    return max(128.0, of_mb - memory_of(os.getpid()) / (1 << 20) - OWN_MEMORY_MB)


def _keep_to_ourselves() -> None:
    """Adopt orphaned descendants, and forbid other processes to inspect this one."""
    if sys.platform != "linux":
        return
    import ctypes

    system = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_SUBREAPER, 1), (_DUMPABLE, 0)):
        system.prctl(option, value, 0, 0, 0)


_SUBREAPER, _DUMPABLE = 36, 4  # linux/prctl.h


def _tasks_of_user() -> int:
    """Return how many threads this user has, as they count towards the limit."""
    tasks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == os.geteuid():
                tasks += sum(1 for _ in (folder / "task").iterdir())
    return tasks


def _is_standard(place: str) -> bool:
    """Whether the interpreter finds this entry of `sys.path` without being given it."""
    import sysconfig

    own = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    name = Path(place).name
    return place in own or name == "lib-dynload" or (name.startswith("python") and name.endswith(".zip"))


def _as_json(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        payload = json.loads(text)
        if isinstance(payload, dict):
            return payload
    return {}


def _number_in(line: bytes) -> int | None:
    digits = line[1:13]
    return int(digits) if digits.isdigit() else None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")
