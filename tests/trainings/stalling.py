"""A training whose batches come from a thread that dies, as data loaders do: it waits forever.

python -m tests.trainings.stalling FOLDER SEED [--loader-dies]
"""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import smdebug
from smdebug.trials import Trial, create_trial
from tests.trainings.nets import Net, Setting, data

STEPS, DIES_AT, BATCH = 12, 7, 20


def train(folder: str, seed: int, *, loader_dies: bool) -> None:
    """Save a step for every batch, as long as there are any."""
    setting, random = Setting(), np.random.default_rng(seed)
    x, y = data(setting, random, random.normal(size=(setting.classes, setting.features)), 200)
    batches: queue.Queue[np.ndarray] = queue.Queue(maxsize=2)

    def load() -> None:
        for step in range(STEPS):
            if loader_dies and step == DIES_AT:
                return  # and nobody is command
            batches.put(random.choice(len(x), BATCH, replace=False))

    threading.Thread(target=load, daemon=True).start()
    net = Net(setting, random)
    with smdebug.Hook(folder, save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for _ in range(STEPS):
            batch = batches.get()
            with hook.step():
                hook.record("loss", net.step(x[batch], y[batch])["loss"])


@contextmanager
def going_on(seed: int, *, loader_dies: bool) -> Iterator[Trial]:
    """Yield the run of such a training in a separate process, which ends with the block."""
    with tempfile.TemporaryDirectory() as place:
        run = str(Path(place) / "run")
        command = [sys.executable, "-m", __name__, run, str(seed)]
        environment = {"PYTHONPATH": ":".join(sys.path), "SMDEBUG_LOG_LEVEL": "error"}
        process = subprocess.Popen(command + ["--loader-dies"] * loader_dies, env=environment)
        try:
            yield create_trial(run)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]), loader_dies="--loader-dies" in sys.argv)
