"""The report in a browser, from disk: no errors, no requests; on screens, on paper, in a notebook."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from smdebug.notebook.inline_report import inline_report
from smdebug.reports import write_report
from smdebug.trials import create_trial
from tests.cli.conftest import failing_run
from tests.reports.browser import PROBE, Tab
from tests.ui.browsing import accessible, click, press, until

pytestmark = pytest.mark.browser

REST = "document.documentElement?.dataset.rest === 'yes'"
TEXT = "(document.querySelector('main')?.innerText ?? '')"
# What was loaded from anywhere; a report loads nothing.
LOADED = "performance.getEntriesByType('resource').length"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    failing_run(folder / "failing", workers=2)
    failing_run(folder / "short", workers=2, steps=5)
    write_report(
        folder / "failing",
        folder / "page.html",
        rules=["VanishingGradient", "ExplodingTensor"],
        other=folder / "short",
        jobs=1,
    )
    write_report(folder / "failing", folder / "alone.html", rules=["VanishingGradient"], jobs=1)
    return folder


@pytest.fixture
def opened(chromium, run):
    """Open a report from disk."""

    def opening(name="page.html", **look):
        chromium.renew((run / name).as_uri(), **{"width": 1250, "height": 1200, "dark": False, **look})
        until(chromium, REST)
        return chromium

    return opening


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 390), (False, 390)])
def test_it_opens_from_disk_with_everything_drawn_and_nothing_loaded(opened, dark, width):
    tab = opened(dark=dark, width=width)
    text = tab.value(TEXT)
    places = [
        text.index(words)
        for words in (
            "Gradients vanish, since step 40",
            "Compared with short",
            "Loss and metrics",
            "Tensors in findings",
            "Layers by steps",
            "About this run",
            "Differences between workers",
        )
    ]
    assert places == sorted(places)
    assert tab.value("document.querySelectorAll('.u-wrap canvas').length") >= 4
    assert tab.value("document.querySelector('.heat canvas').width") > 50
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(LOADED) == 0
    assert tab.value("document.getElementById('problem').hidden")
    assert accessible(tab) == []
    assert tab.complaints == []


def test_a_failing_script_is_reported(opened, run):
    """Otherwise the absence of complaints would mean nothing."""
    text = (run / "page.html").read_text(encoding="utf-8")
    broken = text.replace('"answers":{', '"ans":{')
    assert broken != text
    (run / "broken.html").write_text(broken, encoding="utf-8")
    loaded = "location.protocol === 'file:' && document.readyState === 'complete'"
    with Tab(run / "broken.html", ready=loaded) as tab:
        assert "TypeError" in tab.complaints[0]


def test_the_policy_of_the_page_stops_any_other_script(run):
    text = (run / "page.html").read_text(encoding="utf-8")
    changed = text.replace("</body>", "<script>document.title = 'changed'</script></body>")
    (run / "changed.html").write_text(changed, encoding="utf-8")
    with Tab(run / "changed.html", ready=REST) as tab:
        assert "changed" not in tab.value("document.title")
        assert "Content Security Policy" in tab.complaints[0]


def test_what_only_a_server_can_do_is_absent(opened):
    tab = opened("alone.html")
    buttons = tab.value("[...document.querySelectorAll('button')].map((each) => each.textContent)")
    assert not {"Rules …", "Zoom in …", "Stop …", "Report"} & set(buttons)
    assert tab.value("document.querySelectorAll('#crumbs a').length") == 0
    assert "report of 20" in tab.value("document.getElementById('live').textContent")


def test_the_curves_of_both_runs_share_the_charts(opened, run):
    tab = opened()
    legend = "[...document.querySelectorAll('.keys-of-curves button')].map((each) => each.innerText)"
    until(tab, f"{legend}.length >= 2")
    shown = tab.value(legend)
    for name, text in zip(("failing", "short"), shown, strict=False):
        loss = create_trial(str(run / name)).tensor("loss")
        assert text.split()[0] == name
        assert float(text.split()[1]) == pytest.approx(loss.value(loss.steps()[-1]).item(), rel=1e-3)
    click(tab, "[...document.querySelectorAll('#crumbs a')].at(-1)")
    until(tab, "document.querySelector('h1').textContent === 'Compare 2 runs'")
    click(tab, "document.querySelector('#crumbs a')")
    until(tab, "document.querySelector('h1').textContent === 'failing'")
    opened("alone.html")
    assert tab.value("document.querySelectorAll('.keys-of-curves').length") == 0
    assert tab.complaints == []


def test_a_tensor_is_opened_and_the_steps_are_zoomed(opened):
    tab = opened("alone.html")
    click(tab, "document.querySelector('.layers button:not([aria-expanded])')")
    until(tab, f"{TEXT}.includes('worker at step 90')")
    tab.value("document.dispatchEvent(new CustomEvent('show-steps', {detail: [20, 60]}))")
    until(tab, f"{TEXT}.includes('steps 20 to 60')")
    press(tab, "All steps")
    until(tab, f"!{TEXT}.includes('steps 20 to 60')")
    tab.value("document.querySelectorAll('details:not([open])').forEach((each) => (each.open = true))")
    until(tab, f"{TEXT}.includes('mean magnitude')")
    address = tab.value("location.href")
    tab.renew(address, width=1250, height=1200)
    until(tab, f"{TEXT}.includes('worker at step 90')")  # the address keeps the tensor
    assert tab.complaints == []


def test_in_print_it_is_dark_on_white_and_nothing_is_cut_off(run):
    with Tab(run / "page.html", width=740, height=1000, dark=True, ready=REST) as tab:
        tab.media("print")
        tab.value("dispatchEvent(new Event('beforeprint'))")
        seen = tab.value(PROBE)
        assert tab.value("getComputedStyle(document.documentElement).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert tab.value("document.querySelectorAll('main details:not([open]):not(.menu)').length") == 0
        cut = tab.value(
            "[...document.querySelectorAll('main *')].filter(item => item.checkVisibility()"
            " && item.getBoundingClientRect().right > innerWidth + 1).map(item => item.outerHTML)"
        )
        tab.value("dispatchEvent(new Event('afterprint'))")
        assert tab.value("document.documentElement.dataset.theme") is None
        assert tab.value("document.querySelectorAll('main details:not([open])').length") > 0
        paper = tab.paper()
    assert cut == []
    assert len(seen["texts"]) > 100
    assert [text for text in seen["texts"] if text["contrast"] < 4.5 or text["size"] < 10.5] == []
    assert paper.startswith(b"%PDF")


def test_a_notebook_shows_it_in_a_frame_without_an_origin(run, tmp_path):
    trial = create_trial(str(run / "failing"))
    report = inline_report(trial, ["VanishingGradient"])
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{report._repr_html_()}")
    with Tab(tmp_path / "notebook.html", ready="document.querySelector('iframe') !== null") as tab:
        frame = frame_in(tab)
        until(frame, REST)
        click(frame, "document.querySelector('.layers button:not([aria-expanded])')")
        until(frame, f"{TEXT}.includes('worker at step')")
        assert "Gradients vanish, since step 40" in frame.value(TEXT)
        assert tab.complaints == []


def frame_in(tab):
    """Return the tab, controlling the frame in its page: without an origin, it is a process of its own."""
    tab._session = None
    while not (found := [each for each in targets(tab) if each["url"] == "about:srcdoc"]):
        time.sleep(0.05)
    attached = tab.ask("Target.attachToTarget", targetId=found[0]["targetId"], flatten=True)
    tab._session = attached["sessionId"]
    for domain in ("Runtime", "Log"):
        tab.ask(f"{domain}.enable")
    return tab


def targets(tab):
    return tab.ask("Target.getTargets")["targetInfos"]
