"""The comparison of runs in a real browser."""

from __future__ import annotations

import pytest

from tests.ui.browsing import READY, accessible, click, press, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser


def failing(step):
    return 2.0 if step < 30 else float("nan")


def test_runs_are_compared(page, tmp_path):
    WrittenRun(tmp_path / "a", seed=1).write(30, end=True)
    WrittenRun(tmp_path / "b", seed=2, loss=failing).write(60, end=True)
    tab = page("#/compare/{a},{b}", READY)
    for words in ("rms", "step 0: gradients of blocks.0.weight", "since step 30"):
        until(tab, f"document.body.innerText.includes('{words}')")
    assert tab.value("document.querySelector('main h2').innerText") == "Configuration"
    assert accessible(tab) == []
    assert tab.complaints == []


def test_what_differs_comes_before_what_only_some_runs_record(page, tmp_path):
    for name, config in (
        ("a", {"lr": 0.1, "seed": 1}),
        ("b", {"lr": 0.2, "seed": 1, "depth": 3, "width": 8}),
    ):
        WrittenRun(tmp_path / name, config=config).write(30, end=True)
    tab = page("#/compare/{a},{b}", READY)
    names = "[...document.querySelectorAll('[aria-label^=\"Configuration\"] tbody th')]"
    shown = f"{names}.filter(each => each.checkVisibility()).map(each => each.innerText).join()"
    until(tab, f"{shown} === 'lr'")
    click(tab, "document.querySelector('main details summary')")
    until(tab, f"{shown} === 'lr,depth,width'")
    assert "2 parameters that only some of the runs record" in tab.value("document.body.innerText")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_a_run_that_explodes_does_not_flatten_the_other(page, tmp_path):
    WrittenRun(tmp_path / "a", loss=lambda step: 2 - step / 50).write(60, end=True)
    WrittenRun(tmp_path / "b", loss=lambda step: 2.0 * 1.5 ** max(0, step - 20)).write(60, end=True)
    tab = page("#/compare/{a},{b}", READY)
    note = "document.querySelector('figure .note')?.innerText"
    until(tab, f"{note} === 'values far from most runs are cut off'")
    tab.value("document.querySelector('figure .menu summary').click()")
    press(tab, "All values")
    until(tab, f"{note} === ''")
    assert tab.complaints == []


def test_the_curves_of_a_comparison_are_smoothed_with_the_values_behind_them(page, tmp_path):
    for name in "ab":
        WrittenRun(tmp_path / name, loss=lambda step: float(step % 2)).write(40, end=True)
    tab = page("#/compare/{a},{b}", READY)
    smoothing = "document.querySelector('[aria-label=Smoothing]')"
    tab.value(f"{smoothing}.value = 0.9, {smoothing}.dispatchEvent(new Event('input'))")
    until(tab, "location.hash.includes('smooth=0.9')")
    assert accessible(tab) == []
    assert tab.complaints == []
