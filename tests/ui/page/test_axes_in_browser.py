"""What curves are drawn over, in a real browser."""

from __future__ import annotations

import pytest

from smdebug import modes
from tests.ui.browsing import READY, accessible, choose, until
from tests.ui.page.test_in_browser import POINTED_AT
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser


def test_training_and_validation_are_lines_on_the_axis_of_training_steps(page, tmp_path):
    run = WrittenRun(
        tmp_path / "a",
        loss=lambda step: 1.0 if step % 10 < 8 else 3.0 if step % 10 == 8 else 5.0,
        mode=lambda step: modes.EVAL if step % 10 >= 8 else modes.TRAIN,
    )
    run.write(40, end=True)
    tab = page("#/run/{a}?axis=training", READY)
    legend = "document.querySelector('.keys-of-curves')?.innerText.replace(/\\s+/g, ' ')"
    until(tab, f"{legend}?.includes('training 1 validation 4')")
    beside = "document.querySelector('.beside').innerText.replace(/\\s+/g, ' ')"
    assert tab.value(beside) == "training lowest 1 step 0 validation lowest 4 step 7"
    choose(tab, "document.querySelector('[aria-label=Axis]')", "steps")
    until(tab, "!location.hash.includes('axis')")
    smoothing = "document.querySelector('[aria-label=Smoothing]')"
    tab.value(f"{smoothing}.value = 0.9, {smoothing}.dispatchEvent(new Event('input'))")
    until(tab, "location.hash.includes('smooth=0.9')")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_curves_are_drawn_over_epochs_and_time_with_the_best_value_beside_them(page, tmp_path):
    run = WrittenRun(
        tmp_path / "a", loss=lambda step: abs(step - 33) / 10 + 0.5, epoch_of=lambda step: step // 10
    )
    run.write(40, end=True)
    tab = page("#/run/{a}?axis=epochs&means=1", READY)
    beside = "document.querySelector('.beside').innerText.replace(/\\s+/g, ' ')"
    until(tab, f"{beside}.startsWith('lowest 0.5 step 33, epoch 4')")
    assert tab.value(beside).endswith("epoch mean 1 3.35 2 2.35 3 1.35 4 0.77")
    title = "document.querySelector('.chart .readout').textContent"
    until(tab, f"({POINTED_AT})(700), {title}.startsWith('epoch ')")
    choose(tab, "document.querySelector('[aria-label=Axis]')", "time")
    until(tab, "location.hash.includes('axis=time')")
    until(tab, f"({POINTED_AT})(700), {title}.startsWith('after ')")
    assert accessible(tab) == []
    assert tab.complaints == []
