"""The page in a browser: it draws without errors, and its numbers are the trial's."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from smdebug.reports import write_report
from smdebug.trials import create_trial
from tests.cli.conftest import failing_run
from tests.reports.browser import PROBE, Tab, visit

pytestmark = pytest.mark.browser


class Reader(HTMLParser):
    """The charts, labels and table cells of a page."""

    def __init__(self, html: str):
        super().__init__()
        self.figures: list[dict[str, str | None]] = []
        self.paths: list[int] = []
        self.labels: list[str] = []
        self.rows: dict[str, list[str]] = {}
        self.root: dict[str, str | None] = {}
        self._row: str | None = None
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "html":
            self.root = attributes
        if tag == "figure":
            self.figures.append(attributes)
            self.paths.append(0)
        if tag in ("path", "image", "circle") and self.figures:
            self.paths[-1] += 1
        if attributes.get("role") == "img":
            self.labels.append(attributes.get("aria-label") or "")
        if tag == "tr":
            self._row = attributes.get("data-tensor")
        self._in_cell = tag == "td"

    def handle_data(self, data):
        if self._in_cell and self._row:
            self.rows.setdefault(self._row, []).append(data)
            self._in_cell = False


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    failing_run(folder / "failing", workers=2)
    failing_run(folder / "short", workers=2, steps=5)
    write_report(folder / "failing", folder / "page.html", other=folder / "short", jobs=1)
    return folder


def test_every_chart_is_drawn_without_errors(run):
    page = visit(run / "page.html")
    assert page.complaints == []
    reader = Reader(page.html)
    assert reader.root["data-ready"] == "yes"
    kinds = {figure["data-kind"] for figure in reader.figures}
    assert kinds == {"curve", "multiple", "distribution", "workers"}
    assert all(figure.get("data-drawn") for figure in reader.figures)
    assert min(reader.paths) > 0
    assert all(reader.labels)


def test_a_failing_script_is_reported(run):
    """Otherwise the absence of complaints would mean nothing."""
    text = (run / "page.html").read_text(encoding="utf-8")
    broken = text.replace('"curves":[', '"cur":[')
    assert broken != text
    (run / "broken.html").write_text(broken, encoding="utf-8")
    assert visit(run / "broken.html").complaints


def test_the_numbers_on_the_page_are_the_trials(run):
    rows = Reader(visit(run / "page.html").html).rows
    trial = create_trial(str(run / "failing"))
    assert sorted(rows) == ["fc.weight", "gradient/fc"]
    for name, (step, _, low, high, mean, std, magnitude, *_) in rows.items():
        tensor = trial.tensor(name)
        for shown, reduction, of_magnitude in (
            *(
                (low, "min", False),
                (high, "max", False),
                (mean, "mean", False),
                (std, "std", False),
            ),
            (magnitude, "mean", True),
        ):
            exact = float(tensor.reduction_value(int(step), reduction, abs=of_magnitude))
            assert float(shown) == pytest.approx(exact, rel=1e-3, abs=1e-30)


def test_the_curve_of_the_other_run_is_drawn_behind(run):
    page = visit(run / "page.html").html
    assert re.search(
        r'<g [^>]*aria-description="the other run"[^>]*>\s*<path[^>]* d="M[\d.,-]+L', page
    )
    other = create_trial(str(run / "short")).tensor("loss")
    first, last = (other.steps()[at] for at in (0, -1))
    label = next(label for label in Reader(page).labels if "the other run: " in label)
    _, _, of_other = label.partition("the other run: ")
    numbers = re.fullmatch(r"(\S+) at step (\d+), (\S+) at step (\d+)", of_other)
    assert numbers is not None
    assert [int(numbers[2]), int(numbers[4])] == [first, last]
    assert float(numbers[1]) == pytest.approx(other.value(first).item(), rel=1e-3)
    assert float(numbers[3]) == pytest.approx(other.value(last).item(), rel=1e-3)
    alone = run / "alone.html"
    write_report(run / "failing", alone, rules=["VanishingGradient"], jobs=1)
    assert 'aria-description="the other run"' not in visit(alone).html


@pytest.mark.parametrize("options", [["--blink-settings=preferredColorScheme=0"], []])
def test_it_draws_on_a_phone_in_dark_and_light_mode(run, options):
    page = visit(run / "page.html", *options, width=390, height=800)
    assert page.complaints == []
    # Chromium's own window is not narrower than 500.
    widths = [int(figure["data-drawn"] or 0) for figure in Reader(page.html).figures]
    assert max(widths) <= 500


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone_everything_is_readable_and_reachable_without_scrolling_sideways(run, dark):
    with Tab(run / "page.html", width=390, height=844, dark=dark) as tab:
        tab.value("document.querySelectorAll('details').forEach(item => item.open = true)")
        seen = tab.value(PROBE)
        assert tab.complaints == []
    assert seen["wide"] == 390
    assert len(seen["texts"]) > 100
    assert [text for text in seen["texts"] if text["size"] < 12] == []
    assert [text for text in seen["texts"] if text["contrast"] < 4.5] == []  # AA of WCAG 2
    assert len(seen["targets"]) > 10
    assert [item for item in seen["targets"] if item["height"] < 44 or item["right"] > 390] == []


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_desktop_everything_is_readable(run, dark):
    with Tab(run / "page.html", dark=dark) as tab:
        seen = tab.value(PROBE)
    assert seen["wide"] <= 1250
    assert [text for text in seen["texts"] if text["size"] < 12 or text["contrast"] < 4.5] == []


def test_in_print_it_is_black_on_white_and_nothing_is_cut_off(run):
    with Tab(run / "page.html", width=740, height=1000, dark=True) as tab:
        tab.value("dispatchEvent(new Event('beforeprint'))")
        tab.media("print")
        seen = tab.value(PROBE)
        assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        cut = tab.value(
            "[...document.querySelectorAll('main *')].filter(item => item.checkVisibility()"
            " && item.getBoundingClientRect().right > innerWidth + 1).map(item => item.outerHTML)"
        )
        paper = tab.paper()
    assert seen["wide"] == 740
    assert cut == []
    assert [text for text in seen["texts"] if text["contrast"] < 4.5 or text["size"] < 10.5] == []
    assert seen["targets"] == []  # nothing to press
    assert paper.startswith(b"%PDF")


def test_every_control_is_reached_with_the_keyboard(run):
    with Tab(run / "page.html") as tab:
        focused = "document.activeElement.textContent.slice(0, 40)"
        tab.press("Tab")
        assert tab.value(focused) == "Skip to the verdict"
        pressed = "a[href], summary, select, input"
        wanted = tab.value(
            f"[...document.querySelectorAll('{pressed}')].filter(item => item.checkVisibility()).length"
        )
        reached = 0
        while tab.value(f"document.activeElement.matches('{pressed}')"):
            reached += 1
            outline = tab.value("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", tab.value(focused)  # the focus is visible
            tab.press("Tab")
            while tab.value("document.activeElement.matches('.scroll')"):
                tab.press("Tab")
        assert reached == wanted
        tab.value("document.querySelector('summary').focus()")
        tab.press("Enter")
        assert tab.value("document.querySelector('details').open") is True


def test_the_page_loads_nothing(run):
    html = (run / "page.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert not re.search(r"<(?:link|img|iframe|script)[^>]+(?:src|href)=", html)
