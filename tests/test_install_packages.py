"""The installer of `make setup`: what it shows, logs and does when an installer fails."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tools.install_packages import Progress, ProgressLine, install, names_of

UV = """Using Python 3.11.7 environment at: .venv
Resolved 140 packages in 555ms
Downloading pyarrow (50.0MiB)
Downloading numpy (16.0MiB)
 Downloaded numpy
Prepared 140 packages in 6.34s
Installed 140 packages in 1.10s
"""


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment whose pip prints an error and fails."""
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "python", "print('Collecting click'); print('ERROR: no click'); exit(1)")
    return tmp_path


def program(path: Path, text: str) -> Path:
    """An executable Python program."""
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


def after(lines: str) -> Progress:
    progress = Progress()
    for line in lines.splitlines():
        progress = progress.after(line)
    return progress


def test_progress_of_uv_is_counted_in_bytes():
    assert after(UV.split("Prepared")[0]).text(140, 3.2) == "  downloading 17 of 69 MB (numpy), 3 s"
    assert after(UV).text(140, 7) == "  unpacking, 7 s"


def test_progress_of_pip_is_counted_in_packages():
    lines = "Collecting click==8.1.7 (from -r x)\n  Downloading click-8.1.7-py3-none-any.whl (97 kB)\n"
    assert after(lines).text(140, 3) == "  downloading 1 of 140 (click), 3 s"
    assert after(lines + "Installing collected packages: click").phase == "unpacking"


def test_a_terminal_shows_one_line_that_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    line = ProgressLine(140, stream, clock=lambda: 0.0)
    line.show(Progress(phase="downloading", packages=12, last="a-package-with-a-long-name"))
    line.clear()
    assert stream.getvalue() == "\r\x1b[K  downloading 12 of 140 (a-pa\r\x1b[K"


def test_a_log_file_gets_each_phase_once():
    stream = io.StringIO()
    line = ProgressLine(140, stream)
    for progress in (Progress(), Progress(), after(UV)):
        line.show(progress)
    assert stream.getvalue() == "  reading the package index ...\n  unpacking ...\n"


def test_pip_is_tried_if_uv_fails_and_both_errors_are_shown(environment: Path):
    uv = program(environment / "uv", "print('Resolved 1'); print('error: no index'); exit(2)")
    stream = io.StringIO()
    assert install(environment, ["click==8.1.7"], str(uv), stream) == 1
    shown = stream.getvalue()
    assert "uv failed:\nResolved 1\nerror: no index\n" in shown
    assert "pip failed:\nERROR: no click\n" in shown
    assert f"The whole log is {environment}/setup.log" in shown
    log = (environment / "setup.log").read_text()
    assert "error: no index" in log
    assert "Collecting click\nERROR: no click" in log


def test_pip_is_not_tried_if_uv_succeeds(environment: Path):
    stream = io.StringIO()
    uv = program(environment / "uv", "print('Installed 1 package in 1s')")
    assert install(environment, ["click==8.1.7"], str(uv), stream) == 0
    assert "done after" in stream.getvalue()
    assert "trying pip" not in stream.getvalue()


def test_the_packages_of_a_requirements_file_are_counted_once(tmp_path: Path):
    path = tmp_path / "some.txt"
    path.write_text(
        "numpy==1 ; python_version < '3.12' \\\n    --hash=sha256:00\n"
        "numpy==2 ; python_version >= '3.12' \\\n    --hash=sha256:00\nclick==8\n"
    )
    assert names_of(["--no-deps", "-r", str(path), "torch==2"]) == {"numpy", "click", "torch"}
