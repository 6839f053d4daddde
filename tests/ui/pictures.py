"""`python -m tests.ui.pictures`: the pictures of the page in docs/images, of runs that are made here."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from smdebug.ui.watching.cache import Cache
from smdebug.ui.web.serving import UiServer
from tests.reports.browser import Tab
from tests.ui.written_runs import WrittenRun

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LAYERS = [
    f"model.layers.{block}.{part}.weight"
    for block in range(8)
    for part in ("attention.q_proj", "attention.k_proj", "attention.v_proj", "mlp.up", "mlp.down")
]
# Every chart has its curves, and no verdict is still worked out.
DRAWN = """
  [...document.querySelectorAll('.chart.pairs')].every(chart => chart.querySelector('.u-wrap canvas'))
  && [...document.querySelectorAll('.heat canvas')].every(canvas => canvas.width > 50)
  && !/waiting to be checked|checking …|being read/.test(document.body.innerText)
"""
READY = "document.documentElement?.dataset.ready === 'yes'"


def write_runs(folder: Path) -> None:
    """Write a run that diverges, and some that do not."""
    random = np.random.default_rng(7)
    saved = sorted({*range(60), *range(0, 4000, 10)})

    def failing(step: int) -> float:
        noise = 0.06 * float(random.standard_normal())
        if step >= 3100:
            return float("nan")
        return 5.5 * 0.9985**step + 1.4 + noise + (0 if step < 2900 else 0.004 * (step - 2900) ** 1.3)

    def rms(step: int) -> np.ndarray:
        depth = np.repeat(np.arange(8), 5)
        size = 3e-3 * 0.72**depth * (1 + 8 * np.exp(-step / 120)) * random.lognormal(0, 0.25, 40)
        grown = np.exp(np.clip((step - 2900) / 28, 0, 9) * np.clip((depth - 3) / 4, 0, 1))
        return size * grown

    run = WrittenRun(
        folder / "lr-3e-3",
        names=LAYERS,
        loss=failing,
        rms=rms,
        saved=saved,
        config={"lr": 3e-3, "batch": 64},
        tags="sweep",
        system=lambda step: {"step_seconds": 0.2 + 0.01 * float(random.random())},
    )
    run.write(3200, end=True)
    for at, rate in enumerate(("lr-1e-3", "lr-6e-4", "lr-3e-4", "lr-1e-4")):

        def loss(step: int, at: int = at) -> float:
            return 5.5 * (0.9988 + 0.0002 * at) ** step + 1.4 + 0.06 * float(random.standard_normal())

        run = WrittenRun(
            folder / rate,
            names=LAYERS,
            loss=loss,
            saved=saved,
            seed=at,
            config={"lr": float(rate[3:]), "batch": 64},
            tags=["sweep", "baseline"] if rate == "lr-1e-3" else "sweep",
        )
        run.write(2400 + 300 * at, end=at < 3)


def take(address: str, to: Path, *, dark: bool, ready: str = READY, tensor: bool = False) -> None:
    """Write a picture of the page at an address."""
    with Tab(address, width=1400, height=1300, dark=dark, ready=ready) as tab:
        if tensor:
            tab.value("document.querySelector('.layers button:not([aria-expanded])').click()")
        while not tab.value(DRAWN):
            time.sleep(0.05)
        to.write_bytes(tab.picture())
        if tab.complaints:
            raise SystemExit(f"{address}: {tab.complaints[0]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pictures, light and dark."""
    parser = argparse.ArgumentParser(prog="python -m tests.ui.pictures", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES)
    options = parser.parse_args(argv)
    images = options.to.resolve()
    # Pictures show the path that was given, not the folder of this machine.
    with tempfile.TemporaryDirectory(prefix="smdebug-ui-") as name, contextlib.chdir(name):
        write_runs(Path("runs"))
        server = UiServer(["runs"], cache=Cache(None))
        server.start()
        server.board.find_runs(patience=0)
        rows = {row.name: row.id for row in server.board.rows}
        both = f"{rows['lr-1e-3']},{rows['lr-3e-3']}"
        for dark in (False, True):
            end = "-dark" if dark else ""
            address = server.address
            take(f"{address}#/run/{rows['lr-3e-3']}", images / f"ui-run{end}.png", dark=dark)
            take(f"{address}#/compare/{both}", images / f"ui-compare{end}.png", dark=dark)
            ready = "document.querySelectorAll('tbody a').length === 5"
            take(address, images / f"ui-runs{end}.png", dark=dark, ready=ready)
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
