"""Files of a run that are no files, or not what their name says: each costs itself, and is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import DamagedFile
from smdebug.files.names import ORIGIN, event_key, index_key
from smdebug.runs import open_run, overview_of, verify

WORKER = "worker_0"
KINDS = ("pipe", "device", "link outside")


@pytest.fixture
def run(tmp_path) -> Path:
    with smdebug.Hook(str(tmp_path / "run"), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for step in range(5):
            with hook.step():
                hook.record("loss", np.ones(4) * step)
    return tmp_path / "run"


def replace(file: Path, kind: str) -> None:
    outside = file.parents[3] / f"outside {file.name}"
    file.rename(outside)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else outside)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_file_that_is_none_costs_its_step(run, kind):
    replace(run / index_key(2, WORKER), kind)
    trial = open_run(run)
    assert trial.steps() == [0, 1, 3, 4]
    assert list(trial.damaged_files) == [index_key(2, WORKER)]
    assert trial.tensor("loss").value(3).tolist() == [3.0] * 4
    assert not trial.missing_steps, "it is there, and damaged"
    assert [problem.step for problem in verify(run).problems] == [2]


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_file_that_is_none_costs_its_values(run, kind):
    replace(run / event_key(2, WORKER), kind)
    trial = open_run(run)
    assert trial.steps() == [0, 1, 2, 3, 4]
    with pytest.raises(DamagedFile, match="000000000002_worker_0"):
        trial.tensor("loss").value(2)
    assert trial.tensor("loss").value(3).tolist() == [3.0] * 4
    assert not verify(run).is_sound


@pytest.mark.parametrize("kind", KINDS)
def test_an_origin_that_is_no_file_costs_the_origin(run, kind):
    (run / ORIGIN).rename(run.parent / "origin")
    if kind == "pipe":
        os.mkfifo(run / ORIGIN)
    else:
        (run / ORIGIN).symlink_to("/dev/zero" if kind == "device" else run.parent / "origin")
    assert list(overview_of(open_run(run)).damaged) == [ORIGIN]


def test_an_index_file_that_was_copied_to_another_step_makes_no_step(run):
    for step in (7, 1):
        shutil.copy(run / index_key(3, WORKER), run / index_key(step, WORKER))
    trial = open_run(run)
    assert trial.steps() == [0, 2, 3, 4]
    assert sorted(trial.damaged_files) == [index_key(1, WORKER), index_key(7, WORKER)]
    problem = str(trial.damaged_files[index_key(7, WORKER)])
    assert "belongs to step 3 of worker_0" in problem
    assert {problem.step for problem in verify(run).problems} == {1, 7}


def changed(run: Path, step: int, **entry: object) -> None:
    """Change the first entry of an index file, and leave out its checksum."""
    file = run / index_key(step, WORKER)
    content = json.loads(file.read_text())
    content["meta"].pop("file_crc32c")
    content["tensor_payload"][0].update(entry)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "entry",
    [{"shape": [10**12, 10**12]}, {"shape": [64]}, {"shape": [1 << 40], "dtype": "bool"}],
)
def test_a_shape_that_its_record_cannot_hold_is_damage(run, entry):
    changed(run, 2, **entry)
    trial = open_run(run)
    assert trial.steps() == [0, 1, 3, 4]
    assert "does not fit into its record" in str(trial.damaged_files[index_key(2, WORKER)])
    assert [problem.step for problem in verify(run).problems] == [2]


def test_a_shape_record_that_its_value_cannot_hold_is_damage(run):
    file = run / index_key(2, WORKER)
    content = json.loads(file.read_text())
    content["meta"].pop("file_crc32c")
    record = {"tensorname": "loss", "originalname": "loss", "shape": [10**12]}
    file.write_text(json.dumps({**content, "shape_payload": [record]}))
    with pytest.raises(DamagedFile, match="does not fit into its record"):
        open_run(run).tensor("loss").shape(2)
    assert [problem.step for problem in verify(run).problems] == [2]


def test_a_length_that_the_event_file_does_not_have_is_damage(run):
    changed(run, 2, length=1 << 50, shape=[1 << 40])
    tensor = open_run(run).tensor("loss")
    with pytest.raises(DamagedFile, match="a record that ends at byte 1125899906842624"):
        tensor.shape(2)
    assert tensor.shape(3) == (4,)
    assert not verify(run).is_sound
