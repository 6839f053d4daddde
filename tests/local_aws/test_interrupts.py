"""Ctrl-C, at whatever moment: one line, exit code 130, and nothing is left running or lying about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.local_aws.test_local_aws import ROOT, environment, processes_of

SMDEBUG = (sys.executable, "-m", "smdebug.cli.main")
DEMO = (sys.executable, str(ROOT / "examples" / "demo.py"))
NOTHING_LEFT = "Interrupted. Nothing was left behind.\n"
PATIENCE = 120.0  # for a moment to come, and for an end that hangs


class Started:
    """A command in a terminal of its own, whose temporary files all lie in one folder."""

    def __init__(self, command: Sequence[str], folder: Path, **more: str):
        self.folder = folder
        self._files = folder / "tmp"
        self._files.mkdir()
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command,
                stdout=said,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=_as_in_a_terminal,
                env={**environment(), "TMPDIR": str(self._files), **more},
                cwd=ROOT,
            )

    def said(self, text: str) -> bool:
        return text in self._said.read_text(encoding="utf-8")

    def has_file(self, pattern: str) -> bool:
        return any(self._files.glob(pattern))

    def wait_until(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not holds():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, "the moment did not come"
            time.sleep(0.005)

    def interrupt(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        if how is signal.SIGINT:
            os.killpg(self.process.pid, how)  # as a terminal does
        else:
            self.process.send_signal(how)
        _, complaint = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, complaint

    def leaves_nothing(self) -> bool:
        return list(self._files.iterdir()) == [] and processes_of(str(self._files)) == []


def _as_in_a_terminal() -> None:
    """A shell has what it starts in the background ignore Ctrl-C, these tests too, perhaps."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def a_module_that_takes_its_time(name: str, folder: Path) -> str:
    """A path on which the module of that name leaves a mark when it is loaded, and waits."""
    # Not one long sleep: a signal just before it begins would be heard only when it ends.
    waits = "while True:\n    time.sleep(0.05)\n"
    text = f"import time\nopen({str(folder / 'loading')!r}, 'w').close()\n{waits}"
    place = folder / "path"
    place.mkdir()
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    return os.pathsep.join([str(place), environment()["PYTHONPATH"]])


@pytest.mark.parametrize(
    ("module", "command", "complaint"),
    [
        ("click", (*SMDEBUG, "inspect", "."), "interrupted\n"),
        (
            "tempfile",
            (*SMDEBUG, "local"),
            NOTHING_LEFT,
        ),  # `smdebug` has no need of it, the stack has
        ("tempfile", (*SMDEBUG, "demo"), NOTHING_LEFT),
        ("tempfile", DEMO, NOTHING_LEFT),
    ],
)
def test_while_its_modules_are_loaded(tmp_path, module, command, complaint):
    path = a_module_that_takes_its_time(module, tmp_path)
    started = Started(command, tmp_path, PYTHONPATH=path)
    started.wait_until((tmp_path / "loading").exists)
    assert started.interrupt() == (130, complaint)
    assert started.leaves_nothing()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_while_the_template_is_made(tmp_path, how):
    program = (
        "from pathlib import Path\n"
        "from local_aws.assembly import synthesized\n"
        f"synthesized(cache=Path({str(tmp_path / 'cache')!r}))\n"
    )
    started = Started((sys.executable, "-c", program), tmp_path)
    in_cache = str(tmp_path / "cache")
    started.wait_until(lambda: any(name_of(one) == "node" for one in processes_of(in_cache)))
    started.interrupt(how)
    until = time.monotonic() + PATIENCE
    while processes_of(f"{in_cache}/synth-") and time.monotonic() < until:
        time.sleep(0.01)
    assert processes_of(f"{in_cache}/synth-") == []
    if how is signal.SIGINT:
        assert list((tmp_path / "cache").glob("synth-*")) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("made", ["smdebug-local-*", "smdebug-local-*/wheels"])
def test_while_the_stack_is_deployed(tmp_path, made, how):
    started = Started((*SMDEBUG, "local"), tmp_path)
    started.wait_until(lambda: started.has_file(made))
    assert started.interrupt(how) == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def test_a_second_time_while_it_is_ending(tmp_path):
    started = Started((*SMDEBUG, "local"), tmp_path)
    started.wait_until(lambda: started.has_file("smdebug-local-*/clock"))
    os.killpg(started.process.pid, signal.SIGINT)
    assert started.interrupt() == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def test_once_it_is_up_this_is_how_it_ends(tmp_path):
    started = Started((*SMDEBUG, "local"), tmp_path)
    started.wait_until(lambda: started.said("Ctrl-C ends it"))
    assert started.interrupt() == (0, "")
    assert started.said("Stopped. Nothing was left behind.")
    assert started.leaves_nothing()


def test_while_the_trainings_of_the_demo_run(tmp_path):
    started = Started((*SMDEBUG, "demo"), tmp_path)
    started.wait_until(lambda: started.said("2 rules looked"))
    assert started.interrupt() == (130, NOTHING_LEFT)
    assert started.leaves_nothing()


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return ""
