"""`smdebug export`: every format, read by the libraries that own it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import Any
from urllib.request import ProxyHandler, build_opener

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import DamagedFile
from smdebug.export import export_npz
from smdebug.trials import create_trial
from tests.cli.conftest import flip_a_bit


def test_exports_hold_the_values_of_the_run(ask, failing, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    from safetensors.numpy import load_file

    trial = create_trial(str(failing))
    weight = trial.tensor("fc.weight").value(90)
    ask("export", "npz", failing, "--collection", "weights", "-o", tmp_path / "w.npz")
    assert np.array_equal(np.load(tmp_path / "w.npz")["fc.weight@90"], weight)
    ask("export", "safetensors", failing, "--step", 90, "-o", tmp_path / "w.safetensors")
    assert np.array_equal(load_file(tmp_path / "w.safetensors")["fc.weight"], weight)
    answer = ask("export", "parquet", failing, "--values", "-o", tmp_path / "w.parquet", "--json")
    assert answer.json["values"] == 30
    lines = pyarrow.read_table(tmp_path / "w.parquet").to_pylist()
    (line,) = [line for line in lines if line["tensor"] == "fc.weight" and line["step"] == 90]
    assert np.allclose(line["values"], weight.reshape(-1))
    assert line["max"] == pytest.approx(91)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "failing",
        "w.npz",
        "w.parquet",
        "w.safetensors",
    ]


def test_tensorboard_itself_reads_what_is_exported(ask, failing, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert ask("export", "tensorboard", failing, "-o", tmp_path / "board").code == 0
    board = EventAccumulator(str(tmp_path / "board" / "TRAIN"))
    board.Reload()
    assert [(point.step, round(point.value, 3)) for point in board.Scalars("loss")][:2] == [
        (0, 2.0),
        (10, 1.9),
    ]
    assert {"fc.weight", "gradient/fc"} <= set(board.Tags()["histograms"])
    assert [path.name for path in (tmp_path / "board" / "TRAIN").iterdir()] == ["export.tfevents"]


def test_a_running_tensorboard_shows_what_is_exported(ask, failing, tmp_path):
    assert ask("export", "tensorboard", failing, "-o", tmp_path / "board").code == 0
    command = ["-W", "ignore", "-m", "tensorboard.main", "--logdir", str(tmp_path / "board")]
    with subprocess.Popen(
        [sys.executable, *command, "--port", "0", "--load_fast", "false"],
        stderr=subprocess.PIPE,
        text=True,
    ) as board:
        try:
            output = iter(board.stderr or ())
            address = next(found[0] for line in output if (found := re.search(r"http://\S+/", line)))

            def shown(query: str) -> Any:
                with direct.open(f"{address}data/plugin/{query}") as answer:
                    return json.load(answer)

            direct = build_opener(ProxyHandler({}))  # whatever proxy this machine has
            while not shown("scalars/tags"):
                time.sleep(0.1)
            points = shown("scalars/scalars?run=TRAIN&tag=loss")
            assert [(step, round(value, 3)) for _, step, value in points] == [
                (step, round(2 - step / 100, 3)) for step in range(0, 100, 10)
            ]
            assert {"fc.weight", "gradient/fc"} <= set(shown("histograms/tags")["TRAIN"])
            assert len(shown("histograms/histograms?run=TRAIN&tag=fc.weight")) == 10
        finally:
            board.kill()


def test_an_export_without_a_tensor_leaves_no_file(ask, failing, tmp_path):
    answer = ask("export", "npz", failing, "--tensors", "nope", "-o", tmp_path / "none.npz")
    assert (answer.code, "nothing to export" in answer.err) == (2, True)
    assert not (tmp_path / "none.npz").exists()
    assert ask("export", "npz", failing, "--step", 11, "-o", tmp_path / "none.npz").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["failing"]


@pytest.mark.parametrize("form", ["npz", "safetensors", "parquet", "tensorboard"])
def test_an_export_of_what_is_damaged_is_not_silently_smaller(ask, failing, tmp_path, form):
    flip_a_bit(failing)
    answer = ask("export", form, failing, "-o", tmp_path / "out")
    assert (answer.code, answer.out.splitlines()[0]) == (3, f"29 values written to {tmp_path}/out")
    assert "1 event file is damaged" in answer.err
    assert "smdebug verify" in answer.err
    assert ask("export", form, failing, "--step", 30, "-o", tmp_path / "other").code == 0


def test_from_python_an_export_of_what_is_damaged_leaves_no_file(failing, tmp_path):
    flip_a_bit(failing)
    with pytest.raises(DamagedFile):
        export_npz(failing, tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("form", ["npz", "safetensors", "parquet", "tensorboard"])
def test_an_export_of_reductions_alone_is_refused_by_every_form(ask, tmp_path, form):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    options = {"include_collections": ["gradients"], "reduction_config": reduced}
    with smdebug.Hook(str(tmp_path / "run"), **options) as hook, hook.step():
        hook.record("gradient/fc", np.ones(3))
    answer = ask("export", form, tmp_path / "run", "-o", tmp_path / "out")
    assert (answer.code, "has a value" in answer.err, (tmp_path / "out").exists()) == (
        2,
        True,
        False,
    )


def test_an_export_of_a_run_that_saved_nothing_is_reported(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run")):
        pass
    answer = ask("export", "npz", tmp_path / "run", "-o", tmp_path / "out.npz")
    assert (answer.code, "has saved no tensor: nothing to export" in answer.err) == (2, True)
