"""Tables: of Lightning, of Keras, and of anybody."""

from __future__ import annotations

import math

import pytest

from smdebug.importing.finding import find_runs
from tests.importing.logs import by_name, read, write_csv


def test_empty_cells_have_no_value_and_the_hyperparameters_are_the_configuration(tmp_path):
    folder = tmp_path / "lightning_logs/version_0"
    write_csv(
        folder / "metrics.csv",
        ["epoch", "step", "train_loss", "val_loss"],
        [(0, 9, 1.5, ""), (0, 9, "", 2.5)],
    )
    (folder / "hparams.yaml").write_text("lr: 1e-4\nname: 'a ''b'''\nlayers:\n- 1\n- 2\n", encoding="utf-8")
    (found,) = find_runs(tmp_path / "lightning_logs")
    assert found.name == "version_0"
    points, details = read([found])
    assert by_name(points) == {
        "epoch": [(9, 0.0), (9, 0.0)],
        "train_loss": [(9, 1.5)],
        "val_loss": [(9, 2.5)],
    }
    assert details.config == {"lr": 1e-4, "name": "a 'b'", "layers": None}
    assert details.left_out == {"lines of hparams.yaml that are not of the form name: value": 2}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_recognised_and_epochs_are_steps(tmp_path, separator):
    rows = [["epoch", "loss"], ["0", "2.0"], ["1", "1.0"]]
    (tmp_path / "log.csv").write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8")
    points, details = read(find_runs(tmp_path / "log.csv"))
    assert by_name(points) == {"loss": [(0, 2.0), (1, 1.0)]}
    assert details.step_is == "epoch"


def test_a_table_without_steps_counts_its_rows(tmp_path):
    points, details = read(find_runs(write_csv(tmp_path / "log.csv", ["loss"], [(2.0,), (1.0,)])))
    assert by_name(points) == {"loss": [(0, 2.0), (1, 1.0)]}
    assert details.step_is == "row"


def test_a_header_that_comes_again_is_one_of_a_training_started_again(tmp_path):
    log = write_csv(tmp_path / "log.csv", ["epoch", "loss"], [(0, 2.0), ("epoch", "loss"), (0, 1.0)])
    points, details = read(find_runs(log))
    assert by_name(points) == {"loss": [(0, 2.0), (0, 1.0)]}
    assert not details.left_out


def test_what_is_no_number_is_left_out_and_the_rest_is_read(tmp_path):
    rows = [
        ("x", 1.0),
        ("", 1.0),
        (-1, 1.0),
        (0.5, 1.0),
        ("1e400", 1),
        (1, "none"),
        (2, "1e999"),
        (3, "nan"),
        (4, 1, 1),
    ]
    points, details = read(find_runs(write_csv(tmp_path / "log.csv", ["step", "потеря"], rows)))
    assert [(point.series, point.step) for point in points] == [("потеря", 2), ("потеря", 3)]
    assert points[0].value == math.inf
    assert details.left_out == {
        "rows without a usable number in the column step": 5,
        "values of потеря that are not numbers": 1,
        "rows of more cells than the header": 1,
    }


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00\x01\xff", b"\xef\xbb\xbf"])
def test_a_table_without_content_has_no_values(tmp_path, content):
    (tmp_path / "log.csv").write_bytes(content)
    assert read(find_runs(tmp_path / "log.csv"))[0] == []


def test_tables_without_steps_in_a_folder_are_no_logs(tmp_path):
    write_csv(tmp_path / "a/metrics.csv", ["step", "loss"], [(0, 1.0)])
    write_csv(tmp_path / "data/people.csv", ["name", "age"], [("x", 1)])
    assert [run.name for run in find_runs(tmp_path)] == ["a"]
