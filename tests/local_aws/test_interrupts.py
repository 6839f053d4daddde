"""Ctrl-C at any moment: one line, exit code 130, and no process or file is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.local_aws.test_local_aws import ROOT, environment, processes_of

SMDEBUG = (sys.executable, "-m", "smdebug.cli.main")
DEMO = (sys.executable, str(ROOT / "examples" / "demo.py"))
NOTHING_LEFT = "Interrupted. Nothing was left behind.\n"
TIMEOUT = 120.0  # seconds, until a moment is reached and until the end
IS_UP = "The stack is up at"
ATTEMPTS = 10


class Started:
    """A command as in its own terminal, with all temporary files in one folder."""

    def __init__(self, command: Sequence[str], folder: Path, **more: str):
        self.folder = folder
        self._files = folder / "tmp"
        self._files.mkdir()
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=_as_in_a_terminal,
                env={**environment(), "TMPDIR": str(self._files), **more},
                cwd=ROOT,
            )

    def printed(self, text: str) -> bool:
        return text in self._output.read_text(encoding="utf-8")

    def has_file(self, pattern: str) -> bool:
        return any(self._files.glob(pattern))

    def wait_until(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + TIMEOUT
        while not holds():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, "the moment was not reached"
            time.sleep(0.005)

    def stands_at(self, holds: Callable[[], bool], *, before: str) -> bool:
        """Stop the command once that holds; return whether it had not printed what comes later."""
        self.wait_until(holds)
        os.killpg(self.process.pid, signal.SIGSTOP)  # the command has a process of its own
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        return not self.printed(before)

    def interrupt(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        if how is signal.SIGINT:
            os.killpg(self.process.pid, how)  # as a terminal does
        else:
            self.process.send_signal(how)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)  # it may stand
        _, errors = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, errors

    def leaves_nothing(self) -> bool:
        """Whether its files and processes go: what dies last may need a moment on a busy machine."""
        until = time.monotonic() + TIMEOUT
        while list(self._files.iterdir()) or processes_of(str(self._files)):
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


def standing(command: Sequence[str], folder: Path, holds: Callable[[Started], bool], before: str) -> Started:
    """Start the command until it stands at a moment: a busy machine may be late for that."""
    for attempt in range(ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        started = Started(command, place)
        if started.stands_at(lambda at=started: holds(at), before=before):
            return started
        started.interrupt()
    raise AssertionError(f"{ATTEMPTS} times the moment had passed")


def _as_in_a_terminal() -> None:
    """Restore Ctrl-C: a shell makes background processes, perhaps these tests, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def path_with_slow_module(name: str, folder: Path) -> str:
    """An import path where the module of that name makes a file when it is loaded, and waits."""
    # Short sleeps: a signal just before a long one would be handled only when it ends.
    waits = "while True:\n    time.sleep(0.05)\n"
    text = f"import time\nopen({str(folder / 'loading')!r}, 'w').close()\n{waits}"
    place = folder / "path"
    place.mkdir()
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    return os.pathsep.join([str(place), environment()["PYTHONPATH"]])


@pytest.mark.parametrize(
    ("module", "command", "errors"),
    [
        ("click", (*SMDEBUG, "inspect", "."), "interrupted\n"),
        (
            "tempfile",
            (*SMDEBUG, "local"),
            NOTHING_LEFT,
        ),  # the stack imports it, `smdebug` does not
        ("tempfile", (*SMDEBUG, "demo"), NOTHING_LEFT),
        ("tempfile", DEMO, NOTHING_LEFT),
    ],
)
def test_interrupt_while_modules_load(tmp_path, module, command, errors):
    path = path_with_slow_module(module, tmp_path)
    started = Started(command, tmp_path, PYTHONPATH=path)
    started.wait_until((tmp_path / "loading").exists)
    assert started.interrupt() == (130, errors)
    assert started.leaves_nothing()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupt_during_synthesis(tmp_path, how):
    program = (
        "from pathlib import Path\n"
        "from local_aws.deployment.assembly import synthesized\n"
        f"synthesized(cache=Path({str(tmp_path / 'cache')!r}))\n"
    )
    started = Started((sys.executable, "-c", program), tmp_path)
    in_cache = str(tmp_path / "cache")
    started.wait_until(lambda: any(name_of(process) == "node" for process in processes_of(in_cache)))
    started.interrupt(how)
    until = time.monotonic() + TIMEOUT
    while processes_of(f"{in_cache}/synth-") and time.monotonic() < until:
        time.sleep(0.01)
    assert processes_of(f"{in_cache}/synth-") == []
    if how is signal.SIGINT:
        assert list((tmp_path / "cache").glob("synth-*")) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("made", ["smdebug-local-*", "smdebug-local-*/wheels"])
def test_interrupt_during_deployment(tmp_path, made, how):
    started = standing((*SMDEBUG, "local"), tmp_path, lambda at: at.has_file(made), before=IS_UP)
    assert started.interrupt(how) == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def test_second_interrupt_while_ending(tmp_path):
    clock = "smdebug-local-*/clock"
    started = standing((*SMDEBUG, "local"), tmp_path, lambda at: at.has_file(clock), before=IS_UP)
    os.killpg(started.process.pid, signal.SIGINT)
    os.killpg(started.process.pid, signal.SIGCONT)
    assert started.interrupt() == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def test_interrupt_of_a_running_stack_is_its_normal_end(tmp_path):
    started = Started((*SMDEBUG, "local"), tmp_path)
    started.wait_until(lambda: started.printed("Ctrl-C ends the stack"))
    assert started.interrupt() == (0, "")
    assert started.printed("Stopped. Nothing was left behind.")
    assert started.leaves_nothing()


def test_interrupt_while_the_trainings_of_the_demo_run(tmp_path):
    started = standing(
        (*SMDEBUG, "demo"), tmp_path, lambda at: at.printed(" rules passed"), before="Seconds since the last"
    )
    assert started.interrupt() == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return ""
