"""`smdebug export` to other tools: what is printed, written and refused."""

from __future__ import annotations

import json
import math
import sys

import pytest

from smdebug.sinks.records import IssueRecord, NumbersRecord, from_line
from tests.sinks.made import failing_run


def test_lines_of_json_hold_the_numbers_and_the_problem(ask, tmp_path):
    file = tmp_path / "out" / "run.jsonl"
    file.parent.mkdir()
    answer = ask("export", "jsonl", failing_run(tmp_path / "run"), "-o", file)
    records = [from_line(line) for line in file.read_text().splitlines()]
    numbers = [record for record in records if isinstance(record, NumbersRecord)]
    (issue,) = [record for record in records if isinstance(record, IssueRecord)]
    assert "NaN" in issue.title
    assert any(math.isnan(value) for record in numbers for value in record.values.values())
    assert answer.out == f"{sum(map(len, numbers))} values and 1 problem sent to {file}\n"
    assert [path.name for path in file.parent.iterdir()] == ["run.jsonl"]


def test_a_dash_prints_lines_and_nothing_else(ask, failing):
    answer = ask("export", "jsonl", failing, "-o", "-", "--no-rules")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert lines[0]["record"] == "run"
    assert {line["record"] for line in lines[1:]} == {"numbers"}
    assert {line["run"] for line in lines} == {"failing"}


def test_json_says_what_was_sent(ask, failing, tmp_path):
    answer = ask("export", "jsonl", failing, "-o", tmp_path / "a.jsonl", "--json")
    assert answer.json["form"] == "jsonl"
    assert answer.json["values"] == 30
    assert (answer.json["problems"], answer.json["left_out"]) == (0, [])
    assert answer.json["output"] == str(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("jsonl", "--to", "x"), "use -o"),
        (("jsonl", "-o", "-", "--json"), "both print"),
        (("mlflow", "-o", "x"), "use --to"),
        (("wandb", "--into", "x"), "--into names a run of MLflow"),
        (("mlflow", "--statistic", "median"), "There is no statistic 'median'. The statistics are"),
        (("npz", "--to", "x"), "are for jsonl, prometheus"),
        (("jsonl", "--values"), "--values requires parquet"),
    ],
)
def test_options_that_do_not_fit_are_refused(ask, failing, options, text):
    form, *rest = options
    answer = ask("export", form, failing, *rest)
    assert answer.code == 2
    assert text in " ".join(answer.err.split())


@pytest.mark.parametrize(("form", "tool"), [("mlflow", "MLflow"), ("wandb", "W&B")])
def test_a_missing_library_is_named_with_its_extra(ask, failing, monkeypatch, form, tool):
    monkeypatch.setitem(sys.modules, form, None)
    answer = ask("export", form, failing)
    assert answer.code == 3
    assert f"{tool}: its library is not installed: pip install" in answer.err
    assert f"[{form}]" in answer.err
