"""The page and the report show the same numbers of each golden run, in words and in every pixel."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from smdebug.reports import write_report
from tests.reports.browser import Tab
from tests.ui.browsing import LOADED, READY, choose, until

pytestmark = pytest.mark.browser

RUNS = Path(__file__).parents[1] / "golden" / "runs"
GOLDEN = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
RULES = ["ExplodingTensor", "VanishingGradient", "LossNotDecreasing"]
# Everything that is folded is opened, once it is there.
OPENED = """
document.querySelectorAll('main details:not(.menu):not([open])').forEach((each) => (each.open = true))
"""
# The numbers of each section, without the time that a rule took here, and the pictures that are drawn in it.
SHOWN = """
(() => {
  const here = /Evaluated in .* s\\./g;
  const numbers = (text) => text.replace(here, '').match(/-?\\d[\\d.,]*(e-?\\d+)?%?|NaN/g) || [];
  const shown = (part) => ({
    numbers: numbers(part.innerText),
    pictures: [...part.querySelectorAll('canvas')].map((each) => each.toDataURL()),
  });
  const sections = [...document.querySelectorAll('main section')];
  const named = sections.map((part) => [part.getAttribute('aria-label'), shown(part)]);
  return JSON.stringify(Object.fromEntries(named));
})()
"""
HEAT_MAP = 'section[aria-label="Layers by steps"]'
KINDS = f"document.querySelector('{HEAT_MAP} select[aria-label=Tensors]')"
STATISTICS = f"document.querySelector('{HEAT_MAP} select[aria-label=Statistic]')"
TENSORS = "[...document.querySelectorAll('.layers button:not([aria-expanded])')]"


@pytest.fixture(scope="module")
def other():
    """A second browser, for the report."""
    with Tab("about:blank", ready="true") as tab:
        yield tab


def same_numbers(page, report):
    """Wait for both to show the same; return what that is."""
    for _ in range(200):
        for tab in (page, report):
            tab.value(OPENED)
        theirs, ours = (json.loads(tab.value(SHOWN)) for tab in (page, report))
        if theirs == ours and all(
            "Reading …" not in tab.value("document.body.innerText") for tab in (page, report)
        ):
            return ours
        time.sleep(0.05)
    for name in {**theirs, **ours}:
        assert ours.get(name, {}).get("numbers") == theirs.get(name, {}).get("numbers"), name
        assert ours[name] == theirs[name], f"what is drawn in {name}"
    raise AssertionError("one of them is still reading")


@pytest.mark.parametrize("name", GOLDEN)
def test_every_number_of_a_golden_run_is_the_same(serve, chromium, other, tmp_path, name):
    write_report(RUNS / name, tmp_path / "report.html", rules=RULES, jobs=1)
    client = serve(RUNS, rules=RULES)
    run = client.run(name)
    look = {"width": 1250, "height": 1200}
    chromium.renew(f"{client.server.address}#/run/{run}", **look)
    other.renew((tmp_path / "report.html").as_uri(), **look)
    until(chromium, LOADED)
    for tab in (chromium, other):
        until(tab, READY)
        until(tab, "document.documentElement.dataset.rest === 'yes'")
    shown = same_numbers(chromium, other)
    assert sum(len(part["numbers"]) for part in shown.values()) > 40
    assert sum(len(part["pictures"]) for part in shown.values()) >= 3
    kinds = json.loads(other.value(f"JSON.stringify([...{KINDS}.options].map((each) => each.value))"))
    assert kinds
    for kind in kinds:
        for tab in (chromium, other):
            choose(tab, KINDS, kind)
            choose(tab, STATISTICS, "max")
            drawn = "document.querySelector('.heat canvas').getAttribute('aria-label')"
            until(tab, f"{drawn}.startsWith('largest value of {kind}:')")
        same_numbers(chromium, other)
        for at in range(min(3, other.value(f"{TENSORS}.length"))):
            for tab in (chromium, other):
                tab.value(f"{TENSORS}[{at}].click()")
                title = "document.querySelector('[aria-label=Tensor] h3')?.textContent"
                until(tab, f"{title} === `{kind}: ${{{TENSORS}[{at}].title}}`")
            panel = same_numbers(chromium, other)["Tensor"]
            assert panel["numbers"]
    for tab in (chromium, other):
        assert tab.complaints == []
