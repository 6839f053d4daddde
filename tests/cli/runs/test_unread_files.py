"""Files that a command cannot read: reported, left out, and never counted as passed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import event_key, index_key
from tests.cli.conftest import failing_run


def test_steps_that_are_left_out_since_they_cannot_be_read_are_reported(ask, failing):
    (failing / index_key(40, "worker_0")).write_text("")
    answer = ask("evaluate", failing, "--rule", "ExplodingTensor", "--json")
    assert (answer.code, answer.json[0]["looked"]) == (3, 9)
    (left_out,) = answer.json[0]["left_out"]
    assert (left_out["file"], left_out["step"]) == (index_key(40, "worker_0"), 40)
    assert "1 index file cannot be read" in answer.err
    assert f"smdebug verify {failing}" in answer.err
    assert ask("inspect", failing).err == ""


GONE = event_key(30, "worker_0")
MISSING = f"1 event file is missing, so the tensors in it are left out: {GONE} (step 30, worker_0)"


@pytest.fixture
def with_a_gap(failing: Path, tmp_path: Path) -> Path:
    """The run without the event file of step 30; `whole` beside it has that."""
    shutil.copytree(failing, tmp_path / "whole")
    (failing / GONE).unlink()
    return failing


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compare", "{}/failing", "{}/failing"), 3),
        (("compare", "{}/failing", "{}/whole"), 1),
        (("compare", "{}/whole", "{}/failing"), 1),
        (("export", "npz", "{}/failing", "-o", "{}/out"), 3),
        (("export", "safetensors", "{}/failing", "-o", "{}/out"), 3),
        (("export", "parquet", "{}/failing", "-o", "{}/out"), 3),
        (("export", "tensorboard", "{}/failing", "-o", "{}/out"), 3),
        (("evaluate", "{}/failing", "--rule", "ExplodingTensor"), 3),
        (("evaluate", "{}/failing", "--rule", "VanishingGradient"), 1),
        (("evaluate", "{}/whole", "--rule", "SimilarAcrossRuns", "--other-run", "{}/failing"), 3),
        (("report", "{}/failing", "--no-rules", "-o", "{}/out"), 3),
        (("report", "{}/whole", "--no-rules", "--compare", "{}/failing", "-o", "{}/out"), 3),
        (("plot", "{}/failing", "--tensor", "loss", "-o", "{}/out.png"), 3),
        (("tensor", "{}/failing", "loss"), 0),
    ],
)
def test_a_missing_event_file_is_reported_and_the_run_does_not_pass(ask, with_a_gap, tmp_path, words, code):
    answer = ask(*(word.format(tmp_path) for word in words), "--json")
    assert (answer.code, MISSING in answer.err) == (code, True)
    assert f"smdebug verify {with_a_gap}" in answer.err
    payload = answer.json[0] if words[0] == "evaluate" else answer.json
    gap = payload["left_out"][0]
    assert (gap["run"], gap["file"]) == (str(with_a_gap), GONE)
    assert (gap["step"], gap["worker"]) == (30, "worker_0")


def test_a_missing_event_file_is_reported_in_place_of_its_values(ask, with_a_gap, tmp_path):
    first, other = with_a_gap, tmp_path / "whole"
    assert "the event file of the first run is missing" in ask("compare", first, other).out
    assert "the event file of the second run is missing" in ask("compare", other, first).out
    assert ask("tensor", first, "loss").out.count("its event file is missing") == 1
    answer = ask("tensor", first, "loss", "--step", 30)
    assert (answer.code, GONE in answer.err, "all files were copied" in answer.err) == (
        3,
        True,
        True,
    )
    assert f"damaged: {GONE}" in ask("inspect", first).out
    assert GONE in ask("inspect", first, "--json").json["damaged"]
    page = tmp_path / "page.html"
    ask("report", first, "--no-rules", "-o", page)
    assert GONE in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("export", "npz", "{}/failing", "--step", "40", "-o", "{}/out"),
        ("evaluate", "{}/failing", "--rule", "ExplodingTensor", "--start-step", "40"),
        ("evaluate", "{}/failing", "--rule", "ExplodingTensor", "--end-step", "30"),
        ("tensor", "{}/two", "loss", "--worker", "worker_1"),
    ],
)
def test_an_event_file_that_was_not_asked_for_may_be_gone(ask, with_a_gap, tmp_path, words):
    failing_run(tmp_path / "two", workers=2)
    (tmp_path / "two" / GONE).unlink()
    answer = ask(*(word.format(tmp_path) for word in words))
    assert (answer.code, answer.err) == (0, "")


def test_reductions_whose_event_file_is_gone_are_reported_as_that(ask, tmp_path):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    options = {"include_collections": ["gradients"], "reduction_config": reduced}
    every = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(tmp_path / "run"), save_config=every, **options) as hook:
        for _ in range(2):
            with hook.step():
                hook.record("gradient/fc", np.ones(3))
    (tmp_path / "run" / event_key(1, "worker_0")).unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "same")
    assert ask("inspect", tmp_path / "run").out.count("damaged: ") == 1
    assert "its event file is missing" in ask("tensor", tmp_path / "run", "gradient/fc").out
    answer = ask("compare", tmp_path / "run", tmp_path / "same", "--json")
    assert (answer.code, answer.json["compared"], len(answer.json["left_out"])) == (3, 1, 2)
