"""What the demo prints fits the terminal, and its closing hints work when pasted."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import smdebug
from local_aws.demo.narration import INTRODUCTION, conclusion, short_subject, still_open
from local_aws.demo.screen import Screen, wrapped

EVENT = (
    "      7.5  failing  steps 3 to 9       \033[2missue still open: GradientFlow\033[0m, 5.1 s after upload"
)


@pytest.mark.parametrize("line", [EVENT, INTRODUCTION.replace("\n", " "), f"    Try       {'word ' * 40}"])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(line):
    lines = wrapped(line, 80)
    plain = [re.sub(r"\033\[\d+m", "", part) for part in lines]
    assert max(map(len, plain)) <= 80
    assert " ".join(lines).split() == line.split()


def test_the_dots_of_a_long_task_stay_on_its_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    before = threading.active_count()
    with Screen(out, seconds_per_dot=0).progress("Deploying"):
        while threading.active_count() > before:  # it ends when the line is full
            pass
    (line,) = out.getvalue().splitlines()
    assert 70 <= len(line) <= 80
    assert line.endswith(". 0 s")


def test_what_follows_begins_below_the_last_column():
    first, second = wrapped(EVENT, 80)
    assert second.index("after") == re.sub(r"\033\[\d+m", "", first).index("issue")


def test_a_word_that_is_too_long_is_not_broken():
    address = "https://example.org/" + "a" * 100
    assert [part.strip() for part in wrapped(f"    More      {address}", 80)][-1].endswith(address)


def test_the_subject_of_an_alert_fits_its_column():
    bucket = "smdebug-2ee0c5fe-123456789012-us-east-1"
    subject = f"Run {bucket}/failing is Finished: issues found"
    assert short_subject(subject, bucket) == "Run failing is Finished: issues found"
    subject = f"GradientFlow detected an issue at step 2 of {bucket}/failing"
    assert short_subject(subject, bucket) == "GradientFlow detected an issue at step 2"


def test_the_hints_at_the_end_work_when_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep = tmp_path / "kept runs"
    with smdebug.Hook(str(keep / "failing")) as hook:
        for step in range(20):
            with hook.step():
                hook.record_all({"loss": 10.0**step, "weight": [1.0, 2.0 + step]})
    run = SimpleNamespace(report=None, was_stopped=True, shown_steps={190}, shown_findings={}, name="failing")
    text = conclusion([run, run], Path("summary.md"), keep, Screen(sys.stdout))
    (command,) = re.findall(r"^  (\S*smdebug .*)$", text, re.MULTILINE)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "The loss diverges, since step" in done.stdout


def test_an_issue_is_open_from_the_step_on_where_it_was_found():
    rules = [
        (SimpleNamespace(name="A", issue_since=2), 2),
        (SimpleNamespace(name="B", issue_since=None), 1),  # found and gone
        (SimpleNamespace(name="C", issue_since=0), -1),  # found before the story begins
    ]
    assert [still_open(rules, step) for step in (0, 2, 9)] == [["C"], ["A", "C"], ["A", "C"]]
