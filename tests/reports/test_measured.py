"""The page of a run that measured its tensors: curves of every step, tensors, system, origin."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import smdebug
from smdebug.reports import gather, page_of
from smdebug.runs import compare, open_run
from smdebug.runs.layer_order import names_in_order
from tests.cli.conftest import failing_run

RULE = """
from smdebug.rules import Finding, Rule


class LargeLoss(Rule):
    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").reduction_value(step, "mean")
        if loss > 1.5:
            self.findings.append(Finding("loss", "mean", loss, 1.5))
        return bool(self.findings)
"""


def trained(place, **options):
    with smdebug.Hook(str(place), **options) as hook:
        for step in range(40):
            with hook.step():
                hook.record("loss", 2.0 - step / 40)
                for layer in ("late", "early"):
                    hook.record(f"{layer}.weight", np.full((2, 2), float(step)))
                    hook.record(f"gradient/{layer}.weight", np.full((2, 2), np.nan))
    return open_run(str(place))


@pytest.fixture
def trial(tmp_path):
    return trained(tmp_path / "run", config={"lr": 0.1, "<b>": "<i>"}, note="first")


def data_in(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def test_the_loss_of_every_step_is_drawn_once(trial):
    curves = data_in(page_of(gather(trial)))["curves"]
    assert [curve["name"] for curve in curves] == ["loss"]
    assert len(curves[0]["steps"]) == 40


def test_measured_tensors_are_drawn_by_kind_in_the_order_of_the_model(trial):
    found = gather(trial)
    assert [section.title for section in found.sections] == [
        *("Gradients, measured", "Parameters, measured"),
    ]
    gradients, parameters = found.sections
    assert [series.name for series in parameters.series] == ["late.weight", "early.weight"]
    measured = trial.observations.steps(kind="parameters")
    means = parameters.series[0].numbers["mean"]
    assert means[np.isfinite(means)].tolist() == measured
    assert parameters.series[0].last.shape == (2, 2)
    assert [odd[1] for odd in gradients.series[0].not_finite] == [4] * len(measured)
    assert {item.name for item in found.distributions} >= {"late.weight"}


def test_names_in_findings_are_drawn_in_the_order_of_layers():
    names = ["gradient/b.weight", "other", "a.weight", "gradient/a.weight"]
    assert names_in_order(names, ["a", "b"]) == [
        *("a.weight", "gradient/a.weight", "gradient/b.weight", "other"),
    ]


def test_the_page_shows_where_the_run_comes_from_and_its_machine(trial):
    page = page_of(gather(trial))
    assert 'id="origin"' in page
    assert "&lt;b&gt;" in page
    assert "<i>" not in page
    assert "Seconds per step" in page
    assert [len(curve["steps"]) > 3 for curve in data_in(page)["system"]][:3] == [True] * 3


def test_a_run_without_them_has_neither_section():
    page = page_of(gather(open_run(failing_run().storage)))
    assert 'id="origin"' not in page
    assert 'id="system"' not in page


def test_a_comparison_begins_with_the_configuration(trial, tmp_path):
    other = trained(tmp_path / "other", config={"lr": 0.2, "<b>": "<i>"}, note="first")
    page = page_of(gather(trial), comparison=compare(trial, other))
    rows = re.findall(r'<tr><th scope="row">(\w+)</th><td>([^<]*)</td><td>([^<]*)</td></tr>', page)
    assert rows[0] == ("lr", "0.1", "0.2")


def test_a_report_takes_rules_of_a_file(trial, tmp_path):
    from smdebug.cli.main import main

    (tmp_path / "rule.py").write_text(RULE)
    target = tmp_path / "page.html"
    code = main(["report", trial.path, "--rule-file", str(tmp_path / "rule.py"), "-o", str(target)])
    assert code == 1
    assert 'data-rule="LargeLoss"' in target.read_text(encoding="utf-8")
