"""No spike is missed, in pixels: up, down, at the end, between values that are not finite."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.ui.browsing import click, press, until
from tests.ui.page.test_in_browser import COUNT
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser

CURVE, RED, YELLOW, VIOLET = [5, 80, 174], [179, 38, 30], [253, 231, 37], [68, 1, 84]
CURVE_OF_QUANTILES = [27, 124, 131]
# Before the rules have checked all of it.
ALL_READ = (
    "document.documentElement?.dataset.ready && document.querySelector('.layers button') && "
    "document.querySelector('.u-wrap canvas') && "
    "!/^Reading/.test(document.querySelector('progress')?.ariaLabel ?? '')"
)
LAST = 99_999
UP, DOWN, NOT_A_NUMBER, INFINITE, ALONE = 61_803, 31_415, 80_001, 70_003, 90_050
DROP = 50_000
TOP, BOTTOM, FOOT = (0.05, 0.2), (0.65, 0.87), (0.8, 0.9)


def loss(step):
    if abs(step - ALONE) <= 50:
        return 20.0 if step == ALONE else math.nan
    return {UP: 40.0, DOWN: -40.0, NOT_A_NUMBER: math.nan, INFINITE: math.inf}.get(step, 1.0)


def rms(step):
    values = np.full(8, 1e-2)
    values[3] = 1.0 if step == LAST else 1e-2
    values[5] = 1e-7 if step == DROP else 1e-2
    return values * (1 + (step % 7) / 100)


def show(tab, first, last):
    detail = f"{{detail: [{first}, {last}]}}"
    tab.value(f"document.dispatchEvent(new CustomEvent('show-steps', {detail}))")


def widths_around(step):
    """Windows of all sizes with the step in them."""
    width = LAST + 1
    while width > 100:
        first = max(0, min(step - width // 3, LAST - width))
        yield first, first + width
        width //= 12


@pytest.mark.parametrize("ratio", [0.5, 1.25, 3])
def test_every_kind_of_spike_is_seen_at_every_zoom(page, tmp_path, ratio):
    saved = [*range(0, 100_000, 100), LAST]
    WrittenRun(tmp_path / "a", loss=loss, rms=rms, saved=saved).write(LAST + 1, end=True)
    tab = page("#/run/{a}", ALL_READ)
    press(tab, "Unfold all")
    tab.ask(
        "Emulation.setDeviceMetricsOverride",
        width=1250,
        height=1200,
        deviceScaleFactor=ratio,
        mobile=False,
    )
    tab.value("window.dispatchEvent(new Event('resize'))")

    def seen(canvas, ink, part, step):
        until(tab, f"({COUNT})('{canvas} canvas', {ink}, {part[0]}, {part[1]}) > 0")

    for step, ink, part in (
        (UP, CURVE, TOP),
        (DOWN, CURVE, BOTTOM),
        (NOT_A_NUMBER, RED, FOOT),
        (INFINITE, RED, FOOT),
        (ALONE, CURVE, TOP),
    ):
        for window in widths_around(step):
            show(tab, *window)
            seen(".u-wrap", ink, part, step)
    for window in widths_around(LAST):
        show(tab, *window)
        seen(".heat", YELLOW, (0, 1), LAST)
    assert tab.complaints == []


def test_a_drop_of_one_step_is_seen_among_the_smallest_values_although_its_layer_is_folded(page, tmp_path):
    saved = [*range(0, 100_000, 50), LAST]
    WrittenRun(tmp_path / "a", rms=rms, saved=saved).write(LAST + 1, end=True)
    tab = page("#/run/{a}", ALL_READ)
    press(tab, "Fold all")
    tab.value(
        "(s => { s.value = 'low'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('select[aria-label=Cell]'))"
    )
    for window in widths_around(DROP):
        show(tab, *window)
        until(tab, f"({COUNT})('.heat canvas', {VIOLET}, 0, 1) > 0")
    show(tab, DROP + 1000, LAST - 100)
    until(tab, f"({COUNT})('.heat canvas', {VIOLET}, 0, 1) === 0")
    assert tab.complaints == []


def test_the_panel_of_a_tensor_shows_both_ends_of_a_spike_in_joined_steps(page, tmp_path):
    spike, broken = 3_141, 3_987

    def spiky(step):
        return np.full(2, 1.0 if step == spike else 1e-3)

    def non_finite(step):
        return np.full(2, 1.0 if step == broken else 0.0)

    run = WrittenRun(tmp_path / "a", tensors=2, rms=spiky, broken=non_finite)
    run.write(4_200, end=True)  # more than the heat map keeps apart
    tab = page("#/run/{a}", ALL_READ)
    press(tab, "Unfold all")
    click(tab, "document.querySelector('.layers button:not([aria-expanded])')")
    panel = '[aria-label="Layers by steps"] .u-wrap'
    until(tab, f"document.querySelectorAll('{panel} canvas').length === 2")
    for first, last in ((0, 4_199), (2_500, 3_500), (3_100, 3_200)):
        show(tab, first, last)
        for part in (0.1, 0.3), (0.65, 0.8):
            until(tab, f"({COUNT})('{panel} canvas', {CURVE_OF_QUANTILES}, {part[0]}, {part[1]}) > 0")
    show(tab, 3_800, 4_199)
    until(tab, f"({COUNT})('{panel} canvas', {RED}, 0.7, 0.95) > 0")
    assert tab.complaints == []
