"""A run of which steps are missing: what every command says of it, beside its healthy twin."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import END_MARKER, collections_key, index_key
from smdebug.runs import open_run
from smdebug.runs.evaluation.diagnosing import diagnose

WORKER = "worker_0"
EVERY_STEP = smdebug.SaveConfig(save_interval=1)
LOST = (1, 3, 5, 7, 8, 9, 10, 13)
COMMANDS = (
    ("evaluate",),
    (),
    ("evaluate", "--rule", "ExplodingTensor"),
    ("watch", "--once"),
    ("report", "--output", "report.html"),
    ("export npz", "--output", "values.npz"),
)


def train(place: Path, steps: int = 16, size: int = 10) -> None:
    with smdebug.Hook(str(place), save_config=EVERY_STEP) as hook:
        for step in range(steps):
            with hook.step():
                hook.record("loss", np.linspace(1, 2, size) / (step + 1))


@pytest.fixture
def healthy(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    train(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def halved(healthy) -> Path:
    for step in LOST:
        (healthy / index_key(step, WORKER)).unlink()
    return healthy


def asked(ask, run: Path, words: tuple[str, ...]):
    command, *options = words or ("",)
    return ask(*command.split(), run, *options)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_whole_run_passes(ask, healthy, words):
    answer = asked(ask, healthy, words)
    assert (answer.code, "missing" in answer.out + answer.err) == (0, False)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_run_without_half_of_its_index_files_has_not_passed(ask, halved, words):
    answer = asked(ask, halved, words)
    assert (answer.code, "8 steps are missing (first: 1)" in answer.err) == (3, True)


@pytest.mark.parametrize("words", [(), ("evaluate",), ("watch", "--once")], ids=" ".join)
def test_rules_pass_at_the_steps_that_are_there(ask, halved, words):
    assert "passed at the steps that are there" in asked(ask, halved, words).out


def test_a_problem_is_found_beside_missing_steps(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), save_config=EVERY_STEP) as hook:
        for _ in range(16):
            with hook.step():
                hook.record("loss", np.array([np.nan]))
    (tmp_path / "run" / index_key(4, WORKER)).unlink()
    answer = ask(tmp_path / "run")
    assert (answer.code, "1 step is missing (first: 4)" in answer.err) == (1, True)


def test_steps_outside_of_the_range_do_not_matter(ask, halved):
    assert ask("evaluate", halved, "--start-step", "14").code == 0
    assert ask("evaluate", halved, "--start-step", "13").code == 3


def test_json_answers_name_the_missing_steps(ask, halved):
    left_out = ask("evaluate", halved, "--json").json[0]["left_out"]
    assert sum(gap["missing_steps"] for gap in left_out) == len(LOST)
    assert left_out[0]["file"] == index_key(1, WORKER)
    found = ask("inspect", halved, "--json").json["missing_steps"]
    assert (found["count"], found["first"]) == (8, 1)
    assert '"missing_steps": 8' in ask("watch", halved, "--once", "--json").out


def test_inspect_and_the_list_of_runs_say_it(ask, halved):
    assert "missing: 8 steps are missing (first: 1)" in ask("inspect", halved).out
    assert "8 steps are missing (first: 1)" in ask("runs", halved.parent).out


def test_the_report_says_it(ask, halved):
    ask("report", halved, "--output", "report.html")
    assert "8 steps are missing (first: 1)" in Path("report.html").read_text()


def test_a_notebook_says_it(halved):
    found = diagnose(halved, ["LossNotDecreasing"])
    assert found.missing_steps.count == 8
    assert str(found).startswith("! 8 steps are missing (first: 1).")
    assert "8 steps are missing" in found._repr_html_()
    assert "8 steps are missing (first: 1)" in open_run(halved)._repr_html_()
    assert found.to_dict()["missing_steps"]["count"] == 8


def test_a_run_in_progress_says_it_as_soon_as_a_later_step_is_there(ask, halved):
    (halved / END_MARKER).unlink()
    answer = ask(halved)
    assert (answer.code, "8 steps are missing" in answer.err) == (3, True)
    assert "8 steps missing" in ask("watch", halved, "--once").out


def limited(place: Path, longest: int, size: int) -> None:
    """Train in a process that cannot write files of more than `longest` bytes, as on a full disk."""
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (longest, longest))
            train(place, size=size)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_training_that_could_write_no_step_has_no_verdict(ask, tmp_path):
    limited(tmp_path / "run", 4096, 4000)
    assert (tmp_path / "run" / END_MARKER).exists()
    assert ask(tmp_path / "run").code == 3
    assert ask("verify", tmp_path / "run").code == 3
    watched = ask("watch", tmp_path / "run", "--once")
    assert (watched.code, "nothing was saved" in watched.out) == (3, True)


def test_an_ended_run_of_no_steps_is_not_sound(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), save_config=EVERY_STEP) as hook, hook.step():
        pass
    answer = ask("verify", tmp_path / "run")
    assert (answer.code, "no step of it was saved" in answer.out) == (1, True)
    assert ask(tmp_path / "run").code == 3


def test_a_run_whose_closing_note_could_not_be_written_has_no_verdict(ask, tmp_path):
    run = tmp_path / "run"
    with smdebug.Hook(str(run), save_config=EVERY_STEP) as hook:
        for _ in range(5):
            with hook.step():
                hook.record("loss", np.array([1.0]))
        hook.flush()
        before = (run / collections_key(WORKER)).read_bytes()
    (run / collections_key(WORKER)).write_bytes(before)
    answer = ask(run)
    assert (answer.code, "ended without a closing note of worker_0" in answer.err) == (3, True)
    answer = ask("verify", run)
    assert (answer.code, "left no closing note" in answer.out) == (1, True)
