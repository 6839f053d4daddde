"""The panel of a tensor and the addresses that can be sent, as Chromium shows them."""

from __future__ import annotations

import csv
from xml.etree import ElementTree

import numpy as np
import pytest

import smdebug
from tests.ui.browsing import LOADED, READY, accessible, choose, click, press, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser
LAYER = "document.querySelector('.layers button[title=\"{}\"]')"
TEXT = "(document.body?.innerText ?? '')"  # none while a page is opened
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
    assert tab.value("document.querySelector('[aria-label=Values]').innerText.split(/\\s+/)[0]") == "3"
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


def test_scale_and_folding_of_an_address_that_is_sent_are_kept(page, tmp_path):
    WrittenRun(tmp_path / "a", tensors=12).write(10, end=True)
    tab = page("#/run/{a}", READY)
    until(tab, f"{LAYER.format('blocks')} !== null")  # the map may come after the verdict
    press(tab, "Fold all")
    click(tab, LAYER.format("blocks"))
    click(tab, LAYER.format("blocks/2"))
    press(tab, "Fit")
    press(tab, "Log scale")
    rows = "[...document.querySelectorAll('.layers button')].map(row => row.textContent).join()"
    until(tab, f"{rows} === '▾ blocks,▸ 0,▸ 1,▾ 2,weight,bias,▸ 3,▸ 4,▸ 5'")
    sent = tab.value("location.hash")
    tab.renew(tab.client.server.address + sent, **tab.look)
    until(tab, LOADED)
    until(tab, READY)
    until(tab, f"{rows} === '▾ blocks,▸ 0,▸ 1,▾ 2,weight,bias,▸ 3,▸ 4,▸ 5'")
    pressed = "[...document.querySelectorAll('button[aria-pressed=true]')].map(b => b.textContent)"
    assert tab.value(f"{pressed}.join()") == "Log scale,Fit"
    assert tab.value("location.hash") == sent
    # What another kind of tensors has is folded anew; what an address does not know is left out.
    tab.value("location.hash = location.hash.replace(/tree=[^&]*/, 'tree=none,%25E0,unknown')")
    until(tab, f"{rows} === '▸ blocks'")
    assert tab.complaints == []


def test_folding_as_an_address_keeps_it_opens_the_same_modules(page, tmp_path):
    WrittenRun(tmp_path / "a").write(2, end=True)
    tab = page("#/")
    for names in (
        [f"layers.{at}.{part}" for at in range(90) for part in ("w", "b, c")],
        ["a", "a/b", "a/b/c", "ü.%,x"],
    ):
        found = tab.value(
            f"""(async () => {{
              const t = await import(new URL('page/tree.js', location.href));
              const names = {names!r};
              const shown = tree => t.shownRows(tree).map(row => row.node.path).join();
              const wrong = [];
              for (let trial = 0; trial < 40; trial++) {{
                const tree = t.treeOf(names);
                if (trial % 2) t.openAll(tree, trial % 4 === 1);
                else t.openFor(tree, t.MOST_OPEN);
                for (let at = 0; at < trial % 5; at++) {{
                  const rows = t.shownRows(tree).filter(row => !row.leaf);
                  if (rows.length) rows[(7 * trial + at) % rows.length].node.open ^= 1;
                }}
                const again = t.treeOf(names);
                t.unfold(again, t.foldingOf(tree, names) || 'some');
                if (shown(again) !== shown(tree)) wrong.push(t.foldingOf(tree, names));
              }}
              return wrong;
            }})()"""
        )
        assert found == []
    assert tab.complaints == []


def test_runs_that_are_hidden_and_the_scale_of_a_comparison_are_in_its_address(page, tmp_path):
    for name in "abc":
        WrittenRun(tmp_path / name, system=lambda step: {"cpu_percent": 50.0}).write(9, end=True)
    tab = page("#/compare/{a},{b},{c}", READY)
    key = "document.querySelectorAll('figure')[{}].querySelectorAll('.keys-of-curves button')[{}]"
    click(tab, key.format(0, 1))
    # Hidden in every chart, and the focus stays.
    for chart in (0, 1):
        until(tab, f"{key.format(chart, 1)}?.ariaPressed === 'false'")
    assert tab.value(f"document.activeElement === {key.format(0, 1)}")
    click(tab, "[...document.querySelectorAll('button')].find(b => b.textContent === 'Log scale')")
    sent = tab.value("location.hash")
    assert "hidden=1" in sent
    assert "log=loss" in sent
    tab.renew(tab.client.server.address + sent, **tab.look)
    until(tab, LOADED)
    until(tab, READY)
    until(tab, f"{key.format(0, 1)}?.ariaPressed === 'false'")
    assert tab.value(f"{key.format(0, 0)}.ariaPressed") == "true"
    assert tab.value("document.querySelector('figure .items button').ariaPressed") == "true"
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


def svg_of(text):
    """The drawing as XML, with the texts in it and its paths."""
    root = ElementTree.fromstring(text)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    return texts, [each.get("d") for each in root.iter("{http://www.w3.org/2000/svg}path")]


def test_a_drawing_has_ticks_names_and_gaps_and_is_valid(page, tmp_path):
    for name, broken in (("a<b>&\x07", 4), ("b", 99)):
        run = WrittenRun(
            tmp_path / name, loss=lambda step, at=broken: float("nan") if step == at else 10.0**step
        )
        run.write(9, end=True)
    tab = page("#/compare/{a<b>&\\x07},{b}", READY)
    tab.value(f"(() => {{ {KEEP_FILES} }})()")
    click(tab, "[...document.querySelectorAll('button')].find(b => b.textContent === 'Log scale')")
    click(tab, "[...document.querySelectorAll('button')].find(b => b.textContent === 'Save as SVG')")
    until(tab, "files['Loss.svg'] !== undefined")
    texts, paths = svg_of(tab.value("files['Loss.svg']"))
    assert {"Loss", "0", "8", "1.00e8"} <= set(texts)
    assert "b" in texts
    assert any(text.startswith("a<b>&") for text in texts)
    assert [path.count("M") for path in paths] == [2, 2, 1, 1]
    click(
        tab,
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Save what is shown as CSV')",
    )
    until(tab, "files['Loss.csv'] !== undefined")
    rows = list(csv.reader(tab.value("files['Loss.csv']").splitlines()))
    assert rows[0][:2] == ["first step", "last step"]
    assert rows[0][4:] == ["smallest b", "largest b"]
    assert [row[4] for row in rows[1:3]] == ["1", "10"]
    assert rows[5][2:] == ["", "", "10000", "10000"]
    assert tab.complaints == []


TEXTS_OF_PICTURE = """
(() => {
  globalThis.drawn = [];
  const real = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    if (!this.canvas.isConnected) drawn.push(text); // charts of the page may be drawn meanwhile
    return real.call(this, text, ...rest);
  };
})()
"""


def test_the_picture_of_the_heat_map_names_its_rows_steps_and_colours(page, tmp_path):
    run = WrittenRun(tmp_path / "a", tensors=200, rms=lambda step: np.full(200, 1e-3 * (1 + step)))
    run.write(21, end=True)
    tab = page("#/run/{a}", READY)
    until(tab, f"{LAYER.format('blocks')} !== null")
    press(tab, "Unfold all")
    tab.value(f"(() => {{ {KEEP_FILES.replace('text()', 'arrayBuffer()')} }})()")
    tab.value(TEXTS_OF_PICTURE)
    press(tab, "PNG")
    until(tab, "files['gradients-rms.png'] !== undefined")
    drawn = tab.value("drawn")
    assert drawn[0] == "root mean square of gradients"
    # All rows, of which most are scrolled away on the screen.
    assert drawn.count("weight") == 100
    for text in ("▾ 99", "0", "20", "0.001", "0.021 (logarithmic)", "■ not finite"):
        assert text in drawn, text
    height = tab.value("new DataView(files['gradients-rms.png']).getUint32(20)")
    assert height > 301 * 17
    assert tab.complaints == []


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
