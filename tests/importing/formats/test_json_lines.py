"""JSON lines: objects of numbers, and lines that are none."""

from __future__ import annotations

import math

from smdebug.importing.finding import find_runs
from tests.importing.logs import by_name, read, write_lines


def test_inner_objects_name_their_values(tmp_path):
    rows = [{"step": 3, "train": {"loss": 1.0}, "lr": 0.1, "time": 1_763_805_600_000, "note": None}]
    points, details = read(find_runs(write_lines(tmp_path / "log.jsonl", rows)))
    assert by_name(points) == {"train/loss": [(3, 1.0)], "lr": [(3, 0.1)]}
    assert points[0].time == 1_763_805_600.0
    assert not details.left_out


def test_hostile_lines_are_left_out_and_the_others_are_read(tmp_path):
    lines = [
        '{"step": 0, "loss": NaN}',
        '{"step": 1, "loss": -Infinity}',
        '{"step": 2, "loss": 1' + "0" * 400 + "}",
        '{"step": 3, "loss": true, "x": [1], "🦊": 1}',
        '{"step": 4, "loss": ',
        "[1, 2]",
        "[" * 50_000,
        '{"step": 1e999, "loss": 1}',
        '{"step": "5", "loss": "0.5"}',
        '{"loss": 1}',
        '{"step": 6, "": 1, "' + "n" * 400 + '": 1}',
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    points, details = read(find_runs(tmp_path / "log.jsonl"))
    losses = [(point.step, point.value) for point in points if point.series == "loss"]
    assert math.isnan(losses[0][1])
    assert losses[1:] == [(1, -math.inf), (2, math.inf), (5, 0.5)]
    assert ("🦊", 3) in {(point.series, point.step) for point in points}
    assert details.left_out == {
        "values of loss that are not numbers": 1,
        "values of x that are not numbers": 1,
        "lines that are not JSON": 2,
        "lines that are not JSON objects": 1,
        "rows without a usable number in the column step": 2,
    }


def test_parts_of_epochs_are_values_and_rows_are_counted(tmp_path):
    rows = [{"epoch": 0.5, "loss": 2.0}, {"epoch": 1.0, "loss": 1.0}]
    points, details = read(find_runs(write_lines(tmp_path / "log.jsonl", rows)))
    assert by_name(points) == {"epoch": [(0, 0.5), (1, 1.0)], "loss": [(0, 2.0), (1, 1.0)]}
    assert details.step_is == "row"


def test_a_file_of_any_ending_is_a_log_if_its_first_line_names_a_step(tmp_path):
    assert len(find_runs(write_lines(tmp_path / "log.txt", [{"step": 0, "loss": 1.0}]))) == 1
