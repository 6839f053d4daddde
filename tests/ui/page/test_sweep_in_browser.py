"""A sweep on the page of a comparison, in a real browser."""

from __future__ import annotations

import pytest

from tests.ui.browsing import READY, accessible, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser


def write_sweep(folder, runs):
    for at in range(runs):
        WrittenRun(
            folder / f"run-{at}",
            tensors=2,
            loss=lambda step, at=at: 1.0 + at % 4 - step / 100,
            config={"lr": 10.0 ** -(at % 4), "width": [32, 64][at // 4 % 2]},
        ).write(3, end=True)


def test_a_sweep_shows_which_parameter_decides(page, tmp_path):
    write_sweep(tmp_path, 8)
    tab = page("#/compare/" + ",".join(f"{{run-{at}}}" for at in range(8)), READY)
    until(tab, "document.querySelectorAll('.sweep polyline').length === 8")
    rows = "document.querySelector('[aria-label=Sweep] tbody').innerText.replace(/\\s+/g, ' ')"
    assert tab.value(rows).startswith("lr 1.00 1.00 to 1.00 1 width 0.00 ")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_a_few_runs_are_no_sweep(page, tmp_path):
    write_sweep(tmp_path, 3)
    tab = page("#/compare/{run-0},{run-1},{run-2}", READY)
    assert tab.value("document.querySelector('[aria-label=Sweep]').hidden")
