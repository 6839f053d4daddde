"""What a reader waits for, measured in headless Chromium: paints, frames, and new steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from bench.ui.data import Size, saved_steps
from bench.ui.servers import Smdebug, TensorBoard
from tests.reports.browser import Tab
from tests.ui.written_runs import WrittenRun

DRAWN = "document.querySelector('.u-wrap canvas') && document.querySelector('.heat canvas')?.width > 50"
READ = (
    "document.documentElement?.dataset.ready && "
    "!document.querySelector('progress')?.getAttribute('aria-label').startsWith('Read')"
)
LISTED = (
    "(document.querySelectorAll('tbody tr td a').length > 5 && "
    "document.querySelector('p[role=status]').textContent || '')"
)
CHARTS_OF_TENSORBOARD = "document.querySelector('line-chart canvas') !== null"
LINE_CHARTS = Path(__file__).with_name("line_charts.js")
FRAMES = """
(async () => {
  const last = LAST;
  const pass = () => new Promise(requestAnimationFrame);
  const show = (from, to) =>
    document.dispatchEvent(new CustomEvent('show-steps', {detail: [from, to]}));
  await pass();
  const begun = performance.now();
  let frames = 0;
  while (performance.now() - begun < 4000) {
    const width = last * (0.6 - 0.004 * (frames % 100));
    const first = last * 0.002 * (frames % 150);
    show(first, first + width);
    await pass();
    frames++;
  }
  return frames / ((performance.now() - begun) / 1000);
})()
"""
_PATIENCE = 900.0
_LOOK_EVERY = 0.01


class Paints(NamedTuple):
    """Seconds until a page shows its first charts, and until it shows all of the run."""

    first: float
    complete: float
    again: float


def seconds_until(tab: Tab, condition: str, begun: float | None = None) -> float:
    """Return how long the page takes to reach a state."""
    begun = time.perf_counter() if begun is None else begun
    while not tab.value(condition):
        if time.perf_counter() - begun > _PATIENCE:
            raise SystemExit(f"The page has not reached this state: {condition}")
        # Rarely in the end: looking takes time from the page.
        time.sleep(_LOOK_EVERY if time.perf_counter() - begun < 5 else 20 * _LOOK_EVERY)
    return time.perf_counter() - begun


def blank_tab(origin: str) -> Tab:
    """Return a tab that shows nothing, so that Chromium's own start is not measured."""
    return Tab(f"{origin}/page/icon.svg", ready="true", width=1400)


def paints(server: Smdebug, tab: Tab, run: str) -> Paints:
    """Open the page of a run, wait until all of it was read, and open it a second time."""
    begun = time.perf_counter()
    go_to(tab, server, run)
    first = seconds_until(tab, DRAWN, begun)
    complete = seconds_until(tab, READ, begun)
    return Paints(first, complete, first_paint(server, tab, run))


def first_paint(server: Smdebug, tab: Tab, run: str) -> float:
    """Return how long the page of a run takes to show charts."""
    tab.ask("Page.navigate", url="about:blank")
    begun = time.perf_counter()
    go_to(tab, server, run)
    return seconds_until(tab, DRAWN, begun)


def go_to(tab: Tab, server: Smdebug, run: str) -> None:
    """Open the page of a run."""
    tab.ask("Page.navigate", url=f"{server.address}#/run/{run}")


def list_paint(server: Smdebug, tab: Tab, number: int) -> float:
    """Return how long the page of all runs takes to show them."""
    begun = time.perf_counter()
    tab.ask("Page.navigate", url=server.address)
    return seconds_until(tab, f"{LISTED}.startsWith('{number:,} runs')", begun)


def paints_of_tensorboard(server: TensorBoard, size: Size) -> Paints:
    """Do the same with TensorBoard.

    Its page shows the data that its server has at that time, so it is opened again once there are some.
    """
    with Tab("about:blank", ready="true", width=1400) as tab:
        begun = time.perf_counter()
        url = f"{server.origin}/#timeseries"
        tab.ask("Page.navigate", url=url)
        while not server.count_of_tags():
            time.sleep(0.1)
        tab.ask("Page.navigate", url="about:blank")
        tab.ask("Page.navigate", url=url)
        first = seconds_until(tab, CHARTS_OF_TENSORBOARD, begun)
        last = saved_steps(size)[-1]
        while server.last_step("loss") < last:
            time.sleep(0.2)
        complete = time.perf_counter() - begun
        tab.ask("Page.navigate", url="about:blank")
        begun = time.perf_counter()
        tab.ask("Page.navigate", url=url)
        return Paints(first, complete, seconds_until(tab, CHARTS_OF_TENSORBOARD, begun))


def frames(tab: Tab, last: int) -> float:
    """Return how many frames the open page draws in a second while it is panned and zoomed."""
    return float(tab.value(FRAMES.replace("LAST", str(last))))


def frames_of_line_charts(server: Smdebug, tab: Tab, run: str, last: int) -> float:
    """Return the same of a page with a line chart for each tensor."""
    tab.ask("Page.navigate", url="about:blank")
    tab.ask("Page.navigate", url=server.address)
    seconds_until(tab, "document.querySelector('tbody') !== null")
    count = tab.value(LINE_CHARTS.read_text(encoding="utf-8").replace("RUN", f"'{run}'"))
    assert count > 1, "there is no chart"
    return frames(tab, last)


def seconds_to_new_steps(server: Smdebug, tab: Tab, name: str, run: WrittenRun) -> list[float]:
    """Return how long it takes from the index file of a new step until the open page shows the step."""
    go_to(tab, server, server.run(name))
    seconds_until(tab, "document.documentElement?.dataset.ready === 'yes'")
    found = []
    for at in range(20):
        run.write(1)
        step = f"step {run.next_step - 1:,}"
        found.append(seconds_until(tab, f"document.body.innerText.includes({step!r})"))
        time.sleep(0.05 * (at % 7))  # at any moment between two looks of the server
    return found
