"""Runs, tensors, findings and reports as a notebook shows them."""

import html
import re
import subprocess
import sys

import numpy as np
import pytest

import smdebug
from smdebug.rules import Finding
from smdebug.runs import diagnose
from smdebug.trials import create_trial

EVIL = '<script>alert("1")</script>'


@pytest.fixture
def trial(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), config={"lr": 0.5, EVIL: EVIL}, note=EVIL) as hook:
        for step in range(30):
            with hook.step():
                hook.record("loss", 1.0 + step * 100)
                hook.record(f"weight{EVIL}", np.full((2, 3), np.nan if step > 5 else 1.0))
    return create_trial(str(tmp_path / "run"))


def texts(page):
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def test_a_run_is_a_table_of_what_it_is(trial):
    page = trial._repr_html_()
    assert "<script" not in page
    for text in ("ended", "lr=0.5", "loss", f"{EVIL}={EVIL}", "Python 3."):
        assert text in texts(page)


def test_a_tensor_is_a_table_of_its_steps(trial):
    page = trial.tensor(f"weight{EVIL}")._repr_html_()
    assert "<script" not in page
    assert "2 × 3" in page
    assert page.count("<tr>") <= 13


def test_findings_and_diagnoses_are_escaped(trial):
    finding = Finding(EVIL, "mean", 2.0, 1.0, details={"a": EVIL})
    found = diagnose(trial)
    assert found.issues
    for shown in (finding, found, found.issues[0]):
        page = shown._repr_html_()
        assert "<script" not in page
        assert "<b>" in page
    assert "limit" in Finding("a", "mean", 2.0, 1.0)._repr_html_()


def test_a_report_is_shown_in_a_frame_of_its_own(trial):
    report = trial.report()
    page = report._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts' in page
    assert "allow-same-origin" not in page
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', page)[1]) == report.html
    assert "NonFiniteValues" in str(report)


def test_a_report_of_chosen_rules(trial):
    assert "LossNotDecreasing" in str(trial.report(["LossNotDecreasing"]))


def test_reading_tensors_loads_no_pages():
    code = "import sys, smdebug.trials; print([m for m in sys.modules if 'notebook' in m or 'jinja' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
