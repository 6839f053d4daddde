"""prometheus_client's own parser reads what the sink writes."""

from __future__ import annotations

import math

import pytest

from smdebug.export.sending import file_sink, send_run
from smdebug.sinks.records import NumbersRecord, RunRecord
from smdebug.sinks.targets.prometheus import PrometheusSink

parser = pytest.importorskip("prometheus_client.parser", reason="make test-sinks runs it")


def samples(text: str) -> list:
    return [sample for family in parser.text_string_to_metric_families(text) for sample in family.samples]


def test_a_run_is_read_back(run, tmp_path):
    file = tmp_path / "run.prom"
    send_run(run, file_sink("prometheus", str(file), None))
    found = samples(file.read_text())
    values = {
        (sample.labels["mode"], sample.labels["name"]): sample.value
        for sample in found
        if sample.name == "smdebug_value"
    }
    assert values["validation", "loss"] == 130.0
    assert math.isnan(values["training", "loss"])
    (problem,) = [sample for sample in found if sample.name == "smdebug_problem_open"]
    assert problem.value == 1.0
    assert "NaN" in problem.labels["title"]
    assert {sample.labels["run"] for sample in found} == {"run-a"}


def test_names_of_any_kind_are_read_back():
    name = 'a"b\\c\nd größe {}'
    sink = PrometheusSink("unused", whole=True)
    sink.begin(RunRecord(name, "/x"))
    sink.send([NumbersRecord(0, "training", None, {name: math.inf, "x": -math.inf, "tiny": 5e-324})])
    found = {
        sample.labels["name"]: sample for sample in samples(sink.text()) if sample.name == "smdebug_value"
    }
    assert found[name].value == math.inf
    assert found[name].labels["run"] == name
    assert (found["x"].value, found["tiny"].value) == (-math.inf, 5e-324)
