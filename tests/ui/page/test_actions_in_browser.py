"""Rules, a zoom and a stop from the page, and runs with odd names or damaged files, in Chromium."""

from __future__ import annotations

import json

import pytest

from tests.ui.answering.test_actions import RULE
from tests.ui.browsing import READY, accessible, choose, click, press, until
from tests.ui.written_runs import WrittenRun

pytestmark = pytest.mark.browser
TEXT = "(document.body?.innerText ?? '')"  # none while a page is opened
DIALOG = "[...document.querySelectorAll('dialog')].at(-1)"


def field(place):
    return f"{DIALOG}.querySelectorAll('input')[{place}]"


def test_rules_are_added_changed_and_removed_and_one_of_the_named_file_is_evaluated(page, tmp_path):
    WrittenRun(tmp_path / "runs" / "a").write(5)
    (tmp_path / "rules.py").write_text(RULE)
    tab = page("#/run/{runs/a}", READY, rule_file=str(tmp_path / "rules.py"))
    press(tab, "Rules …")
    until(tab, f"{DIALOG}?.innerText.includes('A rule of the file')")
    assert accessible(tab) == []
    choose(tab, field(1), '{"limit": 2}')
    press(tab, "Evaluate now")
    until(tab, f"{DIALOG}.innerText.includes('step 3: step 3')")
    choose(tab, f"{DIALOG}.querySelector('select')", "VanishingGradient")
    choose(tab, field(1), "{")
    press(tab, "Add to the run")
    until(tab, f"{DIALOG}.innerText.includes('Parameters must be a JSON object')")
    choose(tab, field(1), '{"threshold": 1e-6}')
    press(tab, "Add to the run")
    until(tab, f"{DIALOG}.innerText.includes('VanishingGradient was added.')")
    click(tab, f"{DIALOG}.querySelector('[aria-label=\"Change VanishingGradient\"]')")
    choose(tab, field(1), '{"threshold": 1e-5}')
    press(tab, "Change")
    until(tab, f"{DIALOG}.innerText.includes('VanishingGradient was changed.')")
    rules = json.loads((tmp_path / "runs" / "a" / "rules.json").read_text())
    rules = rules["rules"] if isinstance(rules, dict) else rules
    changed = next(rule for rule in rules if rule.get("name") == "VanishingGradient")
    assert float(changed["parameters"]["threshold"]) == 1e-5
    click(tab, f"{DIALOG}.querySelector('[aria-label=\"Remove VanishingGradient\"]')")
    until(tab, f"{DIALOG}.innerText.includes('VanishingGradient was removed.')")
    assert "VanishingGradient" not in (tmp_path / "runs" / "a" / "rules.json").read_text()
    assert tab.complaints == []


def test_tags_and_a_note_are_edited_and_the_baseline_is_compared_with(page, tmp_path):
    for name in "ab":
        WrittenRun(tmp_path / "runs" / name).write(5, end=True)
    tab = page("#/run/{runs/b}", READY)
    press(tab, "Tags and note …")
    until(tab, f"{DIALOG}?.open")
    choose(tab, field(0), "paper, <b>bold</b>")
    choose(tab, f"{DIALOG}.querySelector('textarea')", "<img src=x onerror=alert(1)>")
    choose(tab, field(1), "learning rates")
    click(tab, field(2))
    press(tab, "Save")
    until(tab, f"{TEXT}.includes('<img src=x onerror=alert(1)>')")
    until(tab, "document.querySelector('.written').innerText.includes('★ baseline')")
    assert tab.value("document.querySelectorAll('main .written img, main .written b').length") == 0
    written = json.loads((tmp_path / "runs" / "b" / "annotations.json").read_text())
    assert (written["tags"], written["pinned"]) == (["paper", "<b>bold</b>"], True)
    assert written["group"] == "learning rates"
    until(tab, "document.documentElement.dataset.rest === 'yes'")
    assert accessible(tab) == []
    tab.value("(location.hash = '#/')")
    until(tab, "document.querySelectorAll('tbody a').length === 2")
    assert tab.value("document.querySelector('tbody a').textContent") == "runs/b"
    click(tab, "document.querySelector('[aria-label=\"Select runs/a\"]')")
    press(tab, "Compare with the baseline")
    until(tab, "location.hash.startsWith('#/compare/')")
    first = tab.value("location.hash.split('/')[2].split(',')[0]")
    until(tab, f"{TEXT}.includes('Where they diverge')")
    assert first == tab.rows["runs/b"]
    assert tab.complaints == []


def test_a_zoom_is_requested_and_its_escape_asks_for_nothing(page, tmp_path):
    WrittenRun(tmp_path / "a").write(5)
    tab = page("#/run/{a}", READY)
    press(tab, "Zoom in …")
    until(tab, f"{DIALOG}?.open")
    tab.press("Escape")
    until(tab, "document.querySelector('dialog') === null")
    assert not (tmp_path / "a" / "control").exists()
    press(tab, "Zoom in …")
    choose(tab, field(0), "blocks.1")
    press(tab, "Request")
    until(tab, f"{TEXT}.includes('2 known tensors will be saved whole.')")
    request = json.loads((tmp_path / "a" / "control" / "zoom").read_text())
    assert request["tensors"] == ["blocks.1"]
    assert tab.complaints == []


def test_a_stop_says_that_it_was_requested(page, tmp_path):
    WrittenRun(tmp_path / "a").write(5)
    tab = page("#/run/{a}", READY)
    press(tab, "Stop …")
    choose(tab, field(0), "it <b>diverges</b>")
    press(tab, "Stop the training")
    until(tab, f"{TEXT}.includes('The training stops at its next saved step')")
    content = json.loads((tmp_path / "a" / "control" / "stop").read_text())
    assert content["reason"] == "it <b>diverges</b>"
    assert tab.complaints == []


MARKUP = "<img src=x onerror=\"document.title='broken'\">"


def test_markup_and_control_characters_in_names_and_messages_are_text(page, tmp_path):
    odd = f"x{MARKUP}\x1b[31m\u202e"
    run = WrittenRun(
        tmp_path / f"run{MARKUP.replace('/', '')}\n\x07",
        names=[f"{odd}.weight", "plain.weight"],
        config={f"key{odd}": f"value{odd}"},
        tags=f"tag{MARKUP}",
    )
    run.write(4, end=True)
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    rule = {"name": f"rule{MARKUP}", "rule": "CustomOf" + MARKUP, "parameters": {}}
    (folder / "rules.json").write_text(json.dumps([rule]))
    tab = page()
    run_id = next(iter(tab.rows.values()))
    for address, words in (
        ("#/", "run<img"),
        (f"#/run/{run_id}", "key"),
        (f"#/compare/{run_id},{run_id}", "Compare"),
    ):
        tab.value(f"location.hash = {address!r}")
        until(tab, f"{TEXT}.includes({words!r})")
        if "run/" in address:
            until(tab, "document.querySelector('.layers button:not([aria-expanded])') !== null")
            click(tab, "document.querySelector('.layers button:not([aria-expanded])')")
            until(tab, f"{TEXT}.includes('worker at step')")
            click(tab, "document.querySelector('details summary')")
        assert tab.value("document.querySelectorAll('img').length") == 0
        assert tab.value("document.title") != "broken"
        assert not tab.value(f"/[\\x00-\\x08\\x0b-\\x1f]/.test({TEXT})")
    assert tab.complaints == []


def test_a_run_with_missing_steps_is_not_shown_as_one_that_passed(page, tmp_path):
    WrittenRun(tmp_path / "a").write(12, end=True)
    next((tmp_path / "a" / "index").rglob("*5_worker_0.json")).unlink()
    tab = page("#/run/{a}", "document.documentElement.dataset.ready !== undefined")
    until(tab, f"{TEXT}.includes('1 step is missing (first: 5).')")
    until(tab, f"{TEXT}.includes('passed at the steps that are there')")
    assert accessible(tab) == []
    tab.value("location.hash = '#/'")
    until(tab, f"{TEXT}.includes('no problem at the steps that are there')")
    assert not tab.value(f"{TEXT}.includes('no problem detected')")
    assert tab.complaints == []


def test_a_damaged_run_says_what_cannot_be_read_and_shows_the_rest(page, tmp_path):
    WrittenRun(tmp_path / "a").write(12, end=True)
    event = sorted((tmp_path / "a" / "events").rglob("*.tfevents"))[5]
    event.write_bytes(event.read_bytes()[:40])
    (tmp_path / "a" / "rules.json").write_bytes(b"[{]")
    tab = page("#/run/{a}", "document.documentElement.dataset.ready !== undefined")
    until(tab, "document.querySelector('summary.warn') !== null")
    click(tab, "document.querySelector('summary.warn')")
    until(tab, f"{TEXT}.includes('of the run cannot be read; the rest is shown')")
    until(tab, f"{TEXT}.includes('step 5')")
    until(tab, f"{TEXT}.includes('rules')")
    until(tab, "document.querySelectorAll('.u-wrap canvas').length > 0")
    until(tab, f"!{TEXT}.includes('Checking:')")
    assert accessible(tab) == []
    assert tab.complaints == []
