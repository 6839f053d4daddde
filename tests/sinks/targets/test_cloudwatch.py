"""Lines in CloudWatch's embedded metric format, checked against what its specification demands."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest

from smdebug.sinks.records import NumbersRecord, RunRecord
from smdebug.sinks.targets.cloudwatch import CloudWatchSink
from tests.sinks.made import DIAGNOSIS, NUMBERS, OPENED, REPORT, RESOLVED, RUN


def sent(*records, run=RUN) -> tuple[list[dict[str, Any]], CloudWatchSink]:
    stream = io.StringIO()
    sink = CloudWatchSink("-", stdout=stream)
    sink.begin(run)
    sink.send(records)
    sink.end()
    lines = [json.loads(line, parse_constant=pytest.fail) for line in stream.getvalue().splitlines()]
    for line in lines:
        check(line)
    return lines, sink


def check(line: dict[str, Any]) -> None:
    """Check a line by the specification: what a directive names is a field, and a metric is a number."""
    meta = line["_aws"]
    assert isinstance(meta["Timestamp"], int)
    (directive,) = meta["CloudWatchMetrics"]
    assert directive["Namespace"] == "smdebug"
    assert 1 <= len(directive["Metrics"]) <= 100
    for metric in directive["Metrics"]:
        assert 1 <= len(metric["Name"]) <= 1024
        assert isinstance(line[metric["Name"]], float)
        assert abs(line[metric["Name"]]) <= 2.0**360
    for dimensions in directive["Dimensions"]:
        assert len(dimensions) <= 30
        for name in dimensions:
            assert line[name].isascii()
            assert line[name].strip()


def metrics(line: dict[str, Any]) -> dict[str, float]:
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    return {metric["Name"]: line[metric["Name"]] for metric in directive["Metrics"]}


def test_numbers_become_metrics_by_run_and_mode():
    (line,), _ = sent(NUMBERS)
    assert metrics(line) == {"loss": 0.25, "non_finite": 2.0}
    assert (line["run"], line["mode"], line["step"]) == ("run-a", "training", 40)
    assert line["_aws"]["Timestamp"] == 1700000000500
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["run", "mode"]]


def test_what_cloudwatch_does_not_take_is_left_out_and_said():
    now = time.time()
    _, sink = sent(NUMBERS, NumbersRecord(41, "training", now, {"loss": 1e200}))
    text = "\n".join(sink.notes)
    assert "no NaN, no infinity and nothing beyond 2^360: 3 values left out" in text
    assert "2 statistics of tensors left out" in text
    assert "older than two weeks: 1 line will be text alone" in text


def test_a_problem_is_a_metric_with_its_text():
    lines, _ = sent(OPENED, RESOLVED, DIAGNOSIS, REPORT)
    assert [metrics(line)["problems_open"] for line in lines] == [1.0, 0.0, 0.0]
    assert lines[0]["problem"] == "vanishing"
    assert lines[0]["title"] == "Gradients vanish, since step 40"
    assert lines[2]["diagnosis"].startswith("1 problem detected")


def test_many_metrics_take_several_lines():
    lines, _ = sent(NumbersRecord(0, "training", time.time(), {f"n{at}": float(at) for at in range(250)}))
    assert [len(metrics(line)) for line in lines] == [100, 100, 50]
    together = {name: value for line in lines for name, value in metrics(line).items()}
    assert together == {f"n{at}": float(at) for at in range(250)}


@pytest.mark.parametrize("name", ["_aws", "run", "mode", "step", "non_finite", "größe", ":x", "n" * 2000])
def test_a_name_that_means_something_else_there_is_another(name):
    (line,), _ = sent(NumbersRecord(7, "training", time.time(), {name: 0.5}))
    assert list(metrics(line).values()) == [0.5]
    assert (line["run"], line["mode"], line["step"]) == ("run-a", "training", 7)


def test_the_name_of_a_run_is_made_ascii():
    (line,), sink = sent(
        NumbersRecord(7, "training", time.time(), {"loss": 0.5}), run=RunRecord("größe", "/x")
    )
    assert line["run"].startswith("gr__e_")
    assert any("größe" in note for note in sink.notes)


def test_numbers_without_values_make_no_line():
    lines, _ = sent(NumbersRecord(7, "training", 1.0, {}, {"w": {"rms": 1.0}}))
    assert lines == []
