"""The panel of a tensor and the addresses that can be sent, as Chromium shows them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import smdebug
from tests.ui.browsing import LOADED, READY, accessible, choose, click, press, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser
LAYER = "document.querySelector('.layers button[title=\"{}\"]')"
TEXT = "document.body.innerText"
PANEL = "document.querySelector('[aria-label=Tensor]')"


def test_a_tensor_has_its_history_distribution_workers_and_where_its_values_are(page, tmp_path):
    run = WrittenRun(tmp_path / "a").write(20)
    tab = page("#/run/{a}", READY)
    click(tab, LAYER.format("blocks.1.weight"))
    until(tab, f"{PANEL}.querySelectorAll('.u-wrap canvas').length === 2")
    for words in (
        "gradients: blocks.1.weight",
        "Distribution of the values over steps",
        "History: root mean square",
        "worker at step 19",
        "worker_0",
        "The values themselves were not saved at step 19",
    ):
        until(tab, f"{TEXT}.includes({words!r})")
    assert accessible(tab) == []
    # New steps of the training: the newest one is shown, the panel stays and keeps the focus.
    tab.value(f"{PANEL}.querySelector('input').focus()")
    run.write(5)
    until(tab, f"{TEXT}.includes('worker at step 24')")
    assert tab.value("document.activeElement.type") == "number"
    assert "tensor=blocks.1.weight" in tab.value("location.hash")
    # Closed, it stays closed when the next step comes.
    tab.press("Escape")
    until(tab, f"{PANEL}.hidden")
    assert tab.value("document.activeElement.title") == "blocks.1.weight"
    assert "tensor=" not in tab.value("location.hash")
    run.write(5, end=True)
    until(tab, "document.querySelector('.facts-line').innerText.includes('ended')")
    until(tab, READY)
    assert tab.value(f"{PANEL}.hidden")
    assert tab.complaints == []


def test_saved_values_are_shown_as_a_histogram_and_a_table(page, tmp_path):
    hook = smdebug.Hook(
        str(tmp_path / "a"),
        include_regex=["weight"],
        save_config=smdebug.SaveConfig(save_interval=1),
    )
    with hook:
        for step in range(4):
            with hook.step(smdebug.modes.TRAIN):
                hook.record("fc/weight", np.arange(12.0).reshape(3, 4) + step)
    tab = page("#/run/{a}", READY)
    click(tab, LAYER.format("fc/weight"))
    until(tab, f"{TEXT}.includes('float64 [3, 4]: the first 3 × 4 values')")
    assert (
        tab.value("document.querySelector('[aria-label=Values]').innerText.split(/\\s+/)[0]") == "3"
    )
    until(tab, "document.querySelector('canvas[aria-label^=\"Histogram of 12 values\"]') !== null")
    choose(tab, f"{PANEL}.querySelector('input')", 1)
    until(tab, f"{TEXT}.includes('12 values at step 1: 1 to 12')")
    assert accessible(tab) == []
    assert tab.complaints == []


# Hold the next answer about a step back until `release` is called, which returns once it was taken.
HELD = """
(() => {
  const real = window.fetch;
  let isFirst = true;
  const held = new Promise((resolve) => {
    window.release = () => new Promise((done) => (resolve(), setTimeout(() => done(true), 300)));
  });
  window.fetch = async (path, ...rest) => {
    const isHeld = isFirst && String(path).includes("/at?");
    isFirst = isFirst && !isHeld;
    const answer = await real(path, ...rest);
    if (isHeld) await held;
    return answer;
  };
})()
"""


def test_a_late_answer_does_not_cover_the_step_that_was_chosen_since(page, tmp_path):
    WrittenRun(tmp_path / "a").write(20, end=True)
    tab = page("#/run/{a}", READY)
    click(tab, LAYER.format("blocks.0.weight"))
    until(tab, f"{TEXT}.includes('worker at step 19')")
    tab.value(HELD)
    for step in (5, 7):
        choose(tab, f"{PANEL}.querySelector('input')", step)
    until(tab, f"{TEXT}.includes('worker at step 7')")
    assert tab.value("window.release()")
    assert "worker at step 7" in tab.value(TEXT)
    assert tab.complaints == []


VIEW = """
JSON.stringify([
  document.querySelector('.bar .quiet').textContent,
  [...document.querySelectorAll('select')].map(field => field.value),
  document.querySelector('[aria-label=Tensor] h3')?.textContent,
  document.querySelector('[aria-label=Tensor] input')?.value,
])
"""


def test_an_address_that_is_sent_shows_the_same_view_of_a_growing_run(page, tmp_path):
    run = WrittenRun(tmp_path / "a", tensors=12).write(40)
    tab = page("#/run/{a}", READY)
    tab.value("document.dispatchEvent(new CustomEvent('show-steps', {detail: [10, 30]}))")
    heat = "document.querySelector('[aria-label=\"Layers by steps\"] select[aria-label=Statistic]')"
    choose(tab, heat, "std")
    click(tab, LAYER.format("blocks.2.bias"))
    until(tab, f"!{PANEL}.hidden")
    choose(tab, f"{PANEL}.querySelector('select')", "max")
    until(tab, f"{TEXT}.includes('History: largest value')")
    choose(tab, f"{PANEL}.querySelector('input')", 12)
    until(tab, f"{TEXT}.includes('worker at step 12')")
    sent, view = tab.value("location.hash"), tab.value(VIEW)
    assert "steps 10 to 30" in view
    run.write(10)
    tab.renew(tab.client.server.address + sent, **tab.look)
    until(tab, LOADED)
    until(tab, f"{TEXT}.includes('worker at step 12')")
    until(tab, f"{TEXT}.includes('step 49')")
    assert tab.value(VIEW) == view
    assert tab.value("location.hash") == sent
    # Another range, put into the address of the open page.
    tab.value(f"location.hash = {sent.replace('from=10', 'from=20')!r}")
    until(tab, f"{TEXT}.includes('steps 20 to 30')")
    until(tab, f"{TEXT}.includes('worker at step 12')")
    assert tab.complaints == []


def test_the_list_keeps_its_filters_on_the_way_back(page, tmp_path):
    for name in ("one", "other"):
        WrittenRun(tmp_path / name).write(2, end=True)
    tab = page("#/?search=one&sort=name")
    until(tab, "document.querySelectorAll('tbody a').length === 1")
    click(tab, "document.querySelector('tbody a')")
    until(tab, READY)
    tab.press("u")
    until(tab, "document.querySelector('input[type=search]')?.value === 'one'")
    until(tab, "document.querySelectorAll('tbody a').length === 1")
    click(tab, "document.querySelector('.skip')")
    assert tab.value("location.hash") == "#/?search=one&sort=name"
    assert tab.value("document.activeElement.id") == "main"
    assert tab.complaints == []


# Keeps what the page would save as a file, instead of saving it.
KEEP_FILES = """
globalThis.files = {};
const known = new Map();
const url = URL.createObjectURL.bind(URL);
URL.createObjectURL = blob => { const made = url(blob); known.set(made, blob); return made; };
HTMLAnchorElement.prototype.click = function () {
  if (this.download) known.get(this.href).text().then(text => (files[this.download] = text));
};
"""


def test_what_is_shown_is_saved_as_pictures_numbers_and_a_report(page, tmp_path):
    WrittenRun(tmp_path / "a", loss=float).write(12, end=True)
    tab = page("#/run/{a}", READY)
    tab.value(f"(() => {{ {KEEP_FILES} }})()")
    saved = "Object.keys(files).length"
    for label, name, beginning in (
        ("Save as PNG", "Loss.png", ""),
        ("Save as SVG", "Loss.svg", "<svg "),
        ("Save every value as CSV", "Loss.csv", "step,loss"),
        ("Report", "a-report.html", "<!doctype html>"),
    ):
        before = tab.value(saved)
        press(tab, label)
        until(tab, f"{saved} > {before}")
        content = tab.value(f"files[{name!r}]")
        assert content.lower().startswith(beginning), (name, content[:40])
    assert tab.value("files['Loss.csv']").split()[-1] == "11,11.0"
    click(tab, LAYER.format("blocks.0.weight"))
    until(tab, f"!{PANEL}.hidden")
    press(tab, "Save as CSV")
    until(tab, "files['blocks.0.weight.csv'] !== undefined")
    rows = list(csv.reader(tab.value("files['blocks.0.weight.csv']").splitlines()))
    assert rows[0][:2] == ["step", "count"]
    assert [row[0] for row in rows[1:]] == [str(step) for step in range(12)]
    assert tab.complaints == []
