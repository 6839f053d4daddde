"""`make bench-ui`: the page of `smdebug ui` in headless Chromium, on a long run and on many runs."""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smdebug.logger import get_logger
from smdebug.ui.cache import Cache
from smdebug.ui.serving import UiServer
from tests.reports.browser import Tab
from tests.ui.written_runs import WrittenRun

DRAWN = (
    "document.querySelector('.u-wrap canvas') && document.querySelector('.heat canvas')?.width > 50"
)
FRAMES = """
(async () => {
  const pass = () => new Promise(requestAnimationFrame);
  const event = (from, to) =>
    document.dispatchEvent(new CustomEvent('show-steps', {detail: [from, to]}));
  const begun = performance.now();
  let frames = 0;
  while (performance.now() - begun < 4000) {
    const width = 60000 - 400 * (frames % 100);
    event(200 * (frames % 150), 200 * (frames % 150) + width);
    await pass();
    frames++;
  }
  return frames / ((performance.now() - begun) / 1000);
})()
"""


class Line(NamedTuple):
    """One measurement and its limit."""

    what: str
    value: float
    unit: str
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def saved_steps(steps: int, number: int) -> list[int]:
    """Return steps as the default plan spaces them: dense at the beginning, then regular."""
    dense = range(min(100, steps))
    return sorted({*dense, *np.linspace(0, steps - 1, number - 100).astype(int).tolist()})


def write_many(folder: Path, number: int) -> None:
    """Write runs of a few steps each."""
    for at in range(number):
        WrittenRun(folder / f"run-{at:04}", tensors=2, seed=at).write(3, end=True)


def seconds_until(tab: Tab, condition: str) -> float:
    """Return how long the page takes to reach a state."""
    begun = time.perf_counter()
    while not tab.value(condition):
        time.sleep(0.01)
    return time.perf_counter() - begun


def measure_run(place: Path) -> list[Line]:
    """Measure the page of one long run: the first time, a second time, and while it is panned."""
    server = UiServer([str(place)], cache=Cache(None))
    server.start()
    server.board.find_runs()
    run = server.board.rows[0].id
    lines = []
    try:
        # A page of the server that shows no run, so that Chromium's own start is not measured.
        origin = f"http://127.0.0.1:{server.port}/page/icon.svg"
        with Tab(origin, ready="true") as tab:
            address = f"{server.address}#/run/{run}"
            tab.ask("Page.navigate", url=address)
            lines.append(Line("first paint, first time", seconds_until(tab, DRAWN), "s", 3))
            seconds_until(tab, "document.documentElement?.dataset.ready === 'yes'")
            tab.ask("Page.navigate", url="about:blank")
            tab.ask("Page.navigate", url=address)
            lines.append(Line("first paint, afterwards", seconds_until(tab, DRAWN), "s", 1))
            seconds_until(tab, "document.documentElement?.dataset.ready === 'yes'")
            rate = tab.value(FRAMES)
            lines.append(Line("pan and zoom, all charts", rate, "frames/s", 30, at_least=True))
    finally:
        server.stop()
    return lines


def measure_list(folder: Path) -> list[Line]:
    """Measure how long many runs take to be listed by a new server."""
    server = UiServer([str(folder)], cache=Cache(None))
    begun = time.perf_counter()
    server.board.find_runs()
    count = len(server.board.rows)
    seconds = time.perf_counter() - begun
    return [Line(f"{count:,} runs listed", seconds, "s", 1)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--saved", type=int, default=1_100)
    parser.add_argument("--tensors", type=int, default=500)
    parser.add_argument("--runs", type=int, default=1_000)
    options = parser.parse_args(argv)
    get_logger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as name:
        folder = Path(name)
        saved = saved_steps(options.steps, options.saved)
        run = WrittenRun(folder / "long", tensors=options.tensors, saved=saved)
        run.write(options.steps, end=True)
        write_many(folder / "many", options.runs)
        lines = measure_list(folder / "many") + measure_run(folder / "long")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines.append(Line("memory, with all of the above", memory, "MB", 500))
    for line in lines:
        sign = "at least" if line.at_least else "at most"
        verdict = "ok" if line.holds else "MISSED"
        print(f"{line.what:<34} {line.value:8.2f} {line.unit:<9} {sign} {line.limit:g}  {verdict}")
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
