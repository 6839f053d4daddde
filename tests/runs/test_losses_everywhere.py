"""Each way in which a run loses something, and what is said of it wherever runs are judged.

A run of which something is lost has passed nowhere, and `verify` calls it sound only if nothing is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import collections_key, event_key, index_key
from smdebug.runs.evaluation.diagnosing import diagnose
from tests.cli.conftest import ask  # noqa: F401 - a fixture
from tests.ui.conftest import serve  # noqa: F401 - a fixture

EVERY_STEP = smdebug.SaveConfig(save_interval=1)


def train(place, steps=6, workers=1):
    ranks = [{"worker": rank, "num_workers": workers, "include_workers": "all"} for rank in range(workers)]
    hooks = [
        smdebug.Hook(str(place), save_config=EVERY_STEP, **(rank if workers > 1 else {})) for rank in ranks
    ]
    for step in range(steps):
        for hook in hooks:
            with hook.step():
                hook.record("loss", np.linspace(1, 2, 10) / (step + 1))
    for hook in reversed(hooks):
        hook.close()
    return place


def index(run, step, worker="worker_0"):
    return run / index_key(step, worker)


def event(run, step):
    return run / event_key(step, "worker_0")


def some_index_files(run):
    train(run)
    for step in (1, 3):
        index(run, step).unlink()


def first_index_file(run):
    index(train(run), 0).unlink()


def last_steps(run):
    train(run)
    for step in (4, 5):
        index(run, step).unlink()
        event(run, step).unlink()


def steps_of_a_worker(run):
    train(run, workers=2)
    for step in (2, 3):
        index(run, step, "worker_1").unlink()


def end_of_a_worker(run):
    train(run, workers=2)
    for step in (4, 5):
        index(run, step, "worker_1").unlink()


def index_file_empty(run):
    index(train(run), 3).write_bytes(b"")


def index_file_a_pipe(run):
    index(train(run), 3).unlink()
    os.mkfifo(index(run, 3))


def index_file_a_device(run):
    index(train(run), 3).unlink()
    index(run, 3).symlink_to("/dev/zero")


def index_file_of_another_step(run):
    shutil.copy(index(train(run), 2), index(run, 3))


def event_file_gone(run):
    event(train(run), 3).unlink()


def event_file_cut_off(run):
    path = event(train(run), 3)
    path.write_bytes(path.read_bytes()[:20])


def event_file_a_pipe(run):
    event(train(run), 3).unlink()
    os.mkfifo(event(run, 3))


def closing_note(run):
    with smdebug.Hook(str(run), save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", np.array([1.0]))
        hook.flush()
        before = (run / collections_key("worker_0")).read_bytes()
    (run / collections_key("worker_0")).write_bytes(before)


STEPS_LOST = {
    some_index_files: "2 steps are missing (first: 1)",
    first_index_file: "1 step is missing (first: 0)",
    last_steps: "2 steps are missing (from 4 on)",
    steps_of_a_worker: "2 steps are missing (from 2 on)",
    end_of_a_worker: "2 steps are missing (from 4 on)",
    closing_note: "the run ended without a closing note of worker_0",
}
FILES_LOST = {
    index_file_empty: index_key(3, "worker_0"),
    index_file_a_pipe: index_key(3, "worker_0"),
    index_file_a_device: index_key(3, "worker_0"),
    index_file_of_another_step: index_key(3, "worker_0"),
    event_file_gone: event_key(3, "worker_0"),
    event_file_cut_off: event_key(3, "worker_0"),
    event_file_a_pipe: event_key(3, "worker_0"),
}
COMMANDS = ([], ["evaluate"], ["watch", "--once"], ["report", "--output", "report.html"])


def asked(ask, run, words):  # noqa: F811
    return ask(*words[:1], run, *words[1:])


@pytest.mark.parametrize("lose", [*STEPS_LOST, *FILES_LOST], ids=lambda lose: lose.__name__)
def test_a_run_of_which_something_is_lost_has_passed_nowhere(lose, tmp_path, ask, serve, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    said = {**STEPS_LOST, **FILES_LOST}[lose]
    lose(tmp_path / "training")
    run = Path("training")
    for words in COMMANDS:
        answer = asked(ask, run, words)
        assert (answer.code, said in answer.err) == (3, True), words
        assert "passed at the steps that are there" in answer.out, words
    verified = ask("verify", run)
    assert (verified.code, "sound" in verified.out) == (1, False)
    client = serve(run)
    shown = client.get(f"/api/run/{client.run()}")
    assert said in shown["missing"]
    assert said in Path("report.html").read_text()
    assert "passed at the steps that are there" in str(diagnose(run))


def test_a_whole_run_passes_everywhere(tmp_path, ask, serve, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    run = train(Path("training"), workers=2)
    for words in COMMANDS:
        answer = asked(ask, run, words)
        assert (answer.code, "that are there" in answer.out, answer.err.count("missing")) == (0, False, 0)
    assert "The run is sound" in ask("verify", run).out
    client = serve(run)
    assert client.get(f"/api/run/{client.run()}")["missing"] == ""


def test_the_leftovers_of_an_attempt_before_are_no_damage(tmp_path, ask, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    run = Path("training")
    train(run, 6)
    (run / "training_job_end.ts").unlink()
    index(run, 5).unlink()  # killed before it was committed
    train(run, 3)
    answer = ask("verify", run)
    assert (answer.code, "The run is sound" in answer.out) == (0, True)
    assert ask(run).code == 0
