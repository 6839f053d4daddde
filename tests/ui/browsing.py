"""Actions of tests on the page in the browser: wait for a state, click, press, run axe."""

from __future__ import annotations

import json
import time
from pathlib import Path

AXE = Path(__file__).with_name("vendored") / "axe-4.14.1.min.js"
LOADED = "location.protocol === 'http:' && document.readyState === 'complete'"
READY = "document.documentElement?.dataset.ready === 'yes'"


def until(tab, condition):
    """Wait for the page to reach a state."""
    for _ in range(1200):
        found = tab.value(condition)
        if found:
            return found
        broken = [text for text in tab.complaints if "exceptionThrown" in text or "Error" in text]
        assert not broken, broken[0]
        time.sleep(0.05)
    raise AssertionError(f"{condition}: {tab.value('document.body.innerText')[:2000]}")


def click(tab, element):
    """Click an element, given as an expression of JavaScript, as soon as it is there."""
    until(tab, f"(found => found ? (found.click(), true) : false)({element})")


def press(tab, label):
    """Press the last button with that label as soon as it is there."""
    labelled = f"b => b.textContent === {json.dumps(label, ensure_ascii=False)}"
    click(tab, f"[...document.querySelectorAll('button')].filter({labelled}).at(-1)")


def choose(tab, field, value):
    """Enter a value into a field, given as an expression of JavaScript."""
    changed = "field.dispatchEvent(new Event('change', {bubbles: true}))"
    tab.value(f"(field => {{ field.value = {json.dumps(value)}; {changed}; }})({field})")


def accessible(tab):
    """Return what axe finds wrong with the page, and with its colours in the other scheme."""
    tab.value(AXE.read_text(encoding="utf-8"))
    return json.loads(tab.value(VIOLATIONS))


VIOLATIONS = """
(async () => {
  const named = (found) => found.violations.map(({ id, nodes }) => [id, nodes[0].html]);
  const root = document.documentElement;
  const theme = root.dataset.theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const wrong = named(await axe.run());
  root.dataset.theme = dark ? "light" : "dark";
  document.body.offsetWidth; // begins the transitions
  await Promise.allSettled(document.getAnimations().map((each) => each.finished));
  wrong.push(...named(await axe.run({ runOnly: ["color-contrast"] })));
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  return JSON.stringify(wrong);
})()
"""
