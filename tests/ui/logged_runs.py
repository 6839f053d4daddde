"""Values that a training has logged to be looked at, added to a run of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import smdebug
from smdebug.saving.logged.keeping import RunLogged
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.storage import open_storage

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def begun(folder: Path) -> RunLogged:
    logged = RunLogged(lambda message, kind: None)
    logged.begin(open_storage(str(folder)), StartedAttempt("run"), "worker_0")
    return logged


def keep_logged(folder: Path, values: Mapping[str, Any], step: int) -> None:
    """Log these values at a step."""
    logged = begun(folder)
    for name, value in values.items():
        logged.add(name, value, step, "TRAIN")
    logged.finish(30)


def log_values(folder: Path, steps: tuple[int, ...] = (0, 2)) -> None:
    """Log a text (number 0), an image, a sound, a table, a matrix and a histogram at each step."""
    logged = begun(folder)
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    for step in steps:
        values = {
            "answer": smdebug.Text(f"step {step}\n{HOSTILE}", caption=HOSTILE),
            f"picture {HOSTILE}": smdebug.Image(pixels + step),
            "tone": smdebug.Audio(np.sin(np.arange(800) / 8), 8000),
            "rows": smdebug.Table([{"name": HOSTILE, "share": 0.25}]),
            "confusion": smdebug.ConfusionMatrix([[9, 1], [2, 8]], ["cat", HOSTILE]),
            "weights": smdebug.Histogram(np.arange(100) + step, bins=5),
        }
        for name, value in values.items():
            logged.add(name, value, step, "TRAIN")
    logged.finish(30)
