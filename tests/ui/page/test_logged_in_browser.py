"""What was logged to be looked at, on the page of a run: stepped through, and never markup."""

from __future__ import annotations

import pytest

from tests.ui.browsing import accessible, click, until
from tests.ui.logged_runs import HOSTILE, log_values
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser

SECTION = "document.querySelector('section[aria-label=Logged]')"
SHOWN = f"{SECTION}?.querySelectorAll('figure').length === 6"


def test_one_slider_steps_through_all_that_was_logged(tmp_path, page):
    WrittenRun(tmp_path / "a").write(3, end=True)
    log_values(tmp_path / "a")
    tab = page("#/run/{a}", SHOWN)
    text = f"{SECTION}.querySelector('pre').textContent"
    assert tab.value(text) == f"step 2\n{HOSTILE}"
    click(tab, f"{SECTION}.querySelector('button[aria-label=Earlier]')")
    until(tab, f"{text}.startsWith('step 0')")
    assert tab.value(f"{SECTION}.querySelector('output').textContent") == "step 0 · 1 of 2"
    assert tab.value(f"{SECTION}.querySelector('button[aria-label=Earlier]').disabled")
    until(tab, f"{SECTION}.querySelector('img').naturalWidth === 8")
    until(tab, f"{SECTION}.querySelector('audio').duration > 0")
    assert tab.value(f"[...{SECTION}.querySelectorAll('td')].some(cell => cell.textContent === '9')")
    assert accessible(tab) == []
    assert not tab.complaints


def test_names_captions_and_texts_are_never_markup(tmp_path, page):
    WrittenRun(tmp_path / "a").write(3, end=True)
    log_values(tmp_path / "a")
    tab = page("#/run/{a}", SHOWN)
    assert tab.value(f"{SECTION}.querySelectorAll('script, [onerror]').length") == 0
    assert tab.value(f"{SECTION}.querySelectorAll('img').length") == 1
    assert tab.value(f"{SECTION}.innerText.split('<script>').length") > 4
    assert not tab.complaints


def test_a_run_that_has_logged_nothing_has_no_such_section(tmp_path, page):
    WrittenRun(tmp_path / "a").write(3, end=True)
    tab = page("#/run/{a}", "document.documentElement?.dataset.rest === 'yes'")
    assert tab.value(f"{SECTION}.hidden")
