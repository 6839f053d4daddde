"""The page without a mouse: where the focus is, what Tab reaches, and what each key does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import smdebug.ui
from tests.ui.browsing import READY, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[3]
APP = Path(smdebug.ui.__file__).parent / "page" / "app.js"

REPLACED = """
(async () => {
  const { h, replace } = await import(new URL("page/dom.js", location.href));
  const box = document.querySelector("main").appendChild(h("div"));
  const focusAfter = (...names) => {
    replace(box, ...names.map((name) => h("a", { href: `#/run/${name}`, text: name })));
    return document.activeElement.innerText;
  };
  focusAfter("b", "c");
  box.children[1].focus();
  return [focusAfter("a", "b", "c"), focusAfter("a", "b", "d"), focusAfter("a")];
})()
"""


def test_the_focus_goes_to_the_same_part_or_the_one_in_its_place(page, tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page()
    assert tab.value(REPLACED) == ["c", "d", "a"]


def test_what_is_made_anew_takes_no_focus_from_elsewhere(page, tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page()
    tab.value("document.getElementById('help').focus()")
    tab.value(REPLACED.replace("box.children[1].focus();", ""))
    assert tab.value("document.activeElement.id") == "help"


def failing(step):
    return 2.0 if step < 30 else float("nan")


@pytest.fixture
def two_runs(tmp_path):
    for name in ("a", "b"):
        run = WrittenRun(tmp_path / name, loss=failing, tensors=4)
        run.write(60, end=True)


# Everything that can be pressed or scrolled, in the order in which it stands on the page, which may be made
# anew at any time.
STOPS = """
[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
  .filter((part) => part.tabIndex >= 0 && !part.disabled && part.checkVisibility())
"""
AT = f"""
(() => {{
  const part = document.activeElement;
  return [{STOPS.strip()}.indexOf(part), getComputedStyle(part).outlineStyle, part.outerHTML.slice(0, 100)];
}})()
"""


LISTED_BY_NAME = "#/?sort=name"  # no row moves while the runs are read


@pytest.mark.parametrize(
    ("address", "is_there"),
    [
        (LISTED_BY_NAME, "document.body.innerText.includes('Group by')"),
        ("#/run/{a}", "document.querySelector('.heat canvas')?.width > 50"),
        ("#/compare/{a},{b}", "document.querySelectorAll('.table a').length === 2"),
    ],
    ids=["list", "run", "comparison"],
)
@pytest.mark.usefixtures("two_runs")
def test_tab_reaches_everything_in_its_order_and_shows_where_it_is(page, address, is_there):
    tab = page(address, is_there)
    if address != LISTED_BY_NAME:
        until(tab, READY)
    count = tab.value(f"{STOPS.strip()}.length")
    assert count > 8
    tab.value(f"{STOPS.strip()}[0].focus()")
    for shift, places in ((False, range(1, count)), (True, reversed(range(count - 1)))):
        for place in places:
            tab.press("Tab", shift=shift)
            reached, outline, shown = tab.value(AT)
            assert reached == place, shown
            assert outline == "solid", shown
    assert tab.complaints == []


ROW = "[...document.querySelectorAll('tbody tr:has(a)')].findIndex((row) => row.matches('.at'))"
LIST = "document.querySelector('h1')?.innerText === 'Runs' && document.querySelector('tbody a') !== null"
IN_THE_LIST = [
    ("j", f"{ROW} === 0"),
    ("j", f"{ROW} === 1"),
    ("k", f"{ROW} === 0"),
    ("ArrowDown", f"{ROW} === 1"),
    ("ArrowUp", f"{ROW} === 0"),
    ("/", "document.activeElement.type === 'search'"),
    ("Escape", "document.activeElement === document.body"),
    ("?", "document.querySelector('dialog[open]') !== null"),
    ("Escape", "document.querySelector('dialog') === null"),
    ("x", "document.querySelectorAll('tbody tr.picked').length === 1"),
    ("j", f"{ROW} === 1"),
    ("x", "document.querySelectorAll('tbody tr.picked').length === 2"),
    ("c", "/^#.compare.[^,]+,[^,]+$/.test(location.hash)"),
]
IN_A_RUN = [
    ("j", f"{ROW} === 0"),
    ("Enter", f"location.hash.startsWith('#/run/') && {READY}"),
    ("+", "location.hash.includes('from=14') && location.hash.includes('to=45')"),
    ("ArrowRight", "location.hash.includes('from=22')"),
    ("ArrowLeft", "location.hash.includes('from=14')"),
    ("0", "!location.hash.includes('from')"),
    ("+", "location.hash.includes('from=14')"),
    ("−", "!location.hash.includes('from')"),
    ("j", "document.activeElement.matches('.issue')"),
    ("u", LIST),
]


@pytest.mark.parametrize("keys", [IN_THE_LIST, IN_A_RUN], ids=["in the list", "in a run"])
@pytest.mark.usefixtures("two_runs")
def test_each_key_does_what_its_line_in_the_list_of_keys_says(page, keys):
    tab = page(LISTED_BY_NAME)
    until(tab, "document.querySelectorAll('tbody a').length === 2")
    for key, effect in keys:
        tab.press(key)
        until(tab, effect)
    assert tab.complaints == []


@pytest.mark.usefixtures("two_runs")
def test_what_is_kept_in_the_address_does_not_undo_a_click_elsewhere(page):
    tab = page(LISTED_BY_NAME)
    until(tab, LIST)
    tab.press("j")
    tab.press("Enter")
    until(tab, f"location.hash.startsWith('#/run/') && {READY}")
    zoom = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '+'}))"
    tab.value(f"location.hash = '#/'; {zoom}")  # as a step that arrives before the list is shown
    until(tab, LIST)
    assert tab.value("location.hash").startswith("#/")
    assert "from=" not in tab.value("location.hash")
    assert tab.complaints == []


def test_the_list_of_keys_names_those_that_the_page_knows_and_so_does_its_description():
    lines = re.search(r"const SHORTCUTS = \[(.*?)\n\];", APP.read_text("utf-8"), re.DOTALL)
    assert lines is not None
    listed = {key for keys in re.findall(r'\["(.*?)", ', lines[1]) for key in keys.split(", ")}
    page = (ROOT / "docs" / "page.md").read_text(encoding="utf-8")
    described = page.partition("## Keyboard\n")[2].partition("\n## ")[0]
    assert {key.replace("-", "−") for key in re.findall("`(.+?)`", described)} == listed
    names = {"ArrowDown": "↓", "ArrowUp": "↑", "ArrowLeft": "←", "ArrowRight": "→", "Escape": "Esc"}
    pressed = {names.get(key, key) for key, _ in [*IN_THE_LIST, *IN_A_RUN]}
    assert pressed == listed
    known = {
        names.get(key, key)
        for script in APP.parent.glob("*.js")
        for key in re.findall(r'\bkey === "(.+?)"', script.read_text("utf-8"))
    }
    assert known - {"=", "-"} == listed  # on the same keys as + and −


FOLDED = """
(async () => {
  const { Folded, h } = await import(new URL("page/dom.js", location.href));
  let opened = 0;
  const folded = new Folded({ opened: () => (opened += 1) });
  document.body.append(folded.element);
  folded.show("what is wrong", h("p", { text: "first" }));
  folded.summary.click();
  folded.show("what is wrong", h("p", { text: "then" })); // before the event of the click
  const after = folded.details.open;
  await new Promise((then) => setTimeout(then, 50));
  return [after, folded.details.open, opened, folded.content.textContent];
})()
"""


def test_a_part_that_was_just_opened_stays_open_when_its_content_comes(page, tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page("#/")

    assert tab.value(FOLDED) == [True, True, 1, "then"]
