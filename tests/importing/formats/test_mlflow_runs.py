"""Runs of MLflow, in files and in a database."""

from __future__ import annotations

import math

import pytest

from smdebug.exceptions import DamagedFile
from smdebug.importing.finding import find_runs
from tests.importing.logs import STARTED, by_name, read, write_mlflow_database, write_mlflow_run


def test_each_run_of_a_file_store_is_found_with_metrics_and_parameters(tmp_path):
    experiment = tmp_path / "mlruns/0"
    for run in ("a", "b"):
        write_mlflow_run(
            experiment, run, {"train/loss": [(0, 2.0), (1, "nan")]}, {"lr": "0.1", "n": "3", "name": "x"}
        )
    runs = find_runs(tmp_path / "mlruns")
    assert [(run.format, run.name) for run in runs] == [("mlflow", "a"), ("mlflow", "b")]
    points, details = read(runs[:1])
    assert (points[0].series, points[0].step, points[0].value) == ("train/loss", 0, 2.0)
    assert math.isnan(points[1].value)
    assert points[1].time == STARTED + 1
    assert details.config == {"lr": 0.1, "n": 3, "name": "x"}
    assert details.started == STARTED


def test_lines_that_are_no_values_are_left_out(tmp_path):
    folder = write_mlflow_run(tmp_path / "0", "a", {"loss": [(0, 1.0)]})
    with (folder / "metrics/loss").open("a") as file:
        file.write("x\n1 y 2\n1763805600000 0.5 1\n1763805600000 0.5 -1\n\n")
    points, details = read(find_runs(tmp_path))
    assert by_name(points) == {"loss": [(0, 1.0), (1, 0.5)]}
    assert details.left_out == {"lines of loss without a time, a value and a step": 3}


def test_a_database_has_the_same_runs(tmp_path):
    values = [("loss", 0, 2.0, False), ("loss", 1, 0.0, True), ("loss", 2, 1.7976931348623157e308, False)]
    write_mlflow_database(tmp_path / "mlflow.db", {"a": values, "b": values})
    for source in (tmp_path, tmp_path / "mlflow.db"):
        runs = find_runs(source)
        assert [run.name for run in runs] == ["a", "b"]
        points, details = read(runs[:1])
        assert points[0].value == 2.0
        assert math.isnan(points[1].value)
        assert points[2].value == math.inf
        assert (details.config, details.tags) == ({"lr": 0.1}, ["team=a"])


def test_a_database_that_is_not_one_of_mlflow_is_damage(tmp_path):
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\x00" + bytes(100))
    with pytest.raises(DamagedFile):
        find_runs(tmp_path / "mlflow.db")
