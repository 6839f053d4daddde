"""W&B's offline files: rows, configuration, and files that are cut off."""

from __future__ import annotations

import pytest

from smdebug.exceptions import DamagedFile
from smdebug.importing.finding import find_runs
from smdebug.importing.formats.leveldb_log import CUT_OFF, DAMAGED_RECORDS
from tests.importing.logs import STARTED, WandbFile, by_name, read

FOLDER = "wandb/offline-run-20251122_100000-x3k9"


def test_rows_configuration_and_tags_are_read(tmp_path):
    file = WandbFile().run("first", {"lr": 0.1, "optimizer": {"name": "adam"}, "_wandb": {"t": 1}}, ["base"])
    for step in range(3):
        values = {"train/loss": 1.0 - step / 4, "val": {"acc": step}, "text": "x", "bad": "NaN"}
        file.history(_step=step, _timestamp=STARTED + step, _runtime=step, **values)
    file.write(tmp_path / FOLDER)
    (found,) = find_runs(tmp_path / "wandb")
    assert (found.format, found.name) == ("wandb", "offline-run-20251122_100000-x3k9")
    points, details = read([found])
    series = by_name(points)
    assert series["train/loss"] == [(0, 1.0), (1, 0.75), (2, 0.5)]
    assert series["val/acc"] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert len(series["bad"]) == 3
    assert points[0].time == STARTED
    assert details.config == {"lr": 0.1, "optimizer": {"name": "adam"}}
    assert (details.tags, details.note) == (["base"], "first")
    assert details.left_out == {"values of text that are not numbers": 3}


def test_the_step_of_the_trainer_counts_and_not_how_often_was_logged(tmp_path):
    file = WandbFile().history(**{"_step": 5, "train/global_step": 500, "train/loss": 1.0})
    points, _ = read(find_runs(file.write(tmp_path)))
    assert by_name(points) == {"train/loss": [(500, 1.0)]}


def test_records_longer_than_a_block_are_read_in_pieces(tmp_path):
    file = WandbFile()
    for step in range(4):
        file.history(_step=step, loss=1.0, text="x" * 70_000)
    points, _ = read(find_runs(file.write(tmp_path)))
    assert [point.step for point in points] == [0, 1, 2, 3]


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_in_the_middle_is_read_up_to_the_cut(tmp_path, kept):
    file = WandbFile()
    for step in range(3000):
        file.history(_step=step, loss=1.0)
    del file.content[int(len(file.content) * kept) :]
    points, details = read(find_runs(file.write(tmp_path)))
    assert [point.step for point in points] == list(range(len(points)))
    assert len(points) == pytest.approx(3000 * kept, abs=60)
    assert set(details.left_out) <= {CUT_OFF, DAMAGED_RECORDS}
    assert details.left_out


def test_a_damaged_block_costs_its_own_records_and_no_others(tmp_path):
    file = WandbFile()
    for step in range(6000):
        file.history(_step=step, loss=1.0)
    file.content[40_000] ^= 1
    points, details = read(find_runs(file.write(tmp_path)))
    assert {0, 5999} <= {point.step for point in points}
    assert details.left_out[DAMAGED_RECORDS] > 0


def test_a_file_that_is_none_of_wandb_is_damage(tmp_path):
    (tmp_path / "run.wandb").write_bytes(b"something else")
    with pytest.raises(DamagedFile, match="not a file of W&B"):
        read(find_runs(tmp_path))
