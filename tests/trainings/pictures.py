"""A small network that learns to tell bars from blobs in coloured pictures, as they are or normalised."""

from __future__ import annotations

import numpy as np

from smdebug.mode_keys import ModeKeys
from tests.rules.made_runs import MadeRun
from tests.trainings.nets import Array, Net, Setting

SIZE = 8
BATCH = 50
COLLECTIONS = {"losses": ["^loss$"], "input_image": ["^input_image$"]}


def pictures(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Lying bars, standing bars and blobs on a ground of another colour, with values from 0 to 1."""
    kinds = random.integers(0, 3, count)
    lines, columns = np.mgrid[:SIZE, :SIZE]
    at, width = random.integers(2, SIZE - 2, (2, count, 1, 1)), 1.5
    masks = np.where(
        kinds[:, None, None] == 0,
        np.abs(lines - at[0]) < width,
        np.where(
            kinds[:, None, None] == 1,
            np.abs(columns - at[1]) < width,
            (lines - at[0]) ** 2 + (columns - at[1]) ** 2 < 2 * width**2,
        ),
    )
    colour, ground = (
        random.uniform(0.6, 1, (count, 3, 1, 1)),
        random.uniform(0, 0.5, (count, 3, 1, 1)),
    )
    painted = np.where(masks[:, None], colour, ground) + random.normal(0, 0.05, (count, 3, SIZE, SIZE))
    return painted.clip(0, 1).astype(np.float32), kinds


def trained(seed: int, *, normalised: bool, steps: int = 40) -> MadeRun:
    """The run of a training on such pictures, whose loss falls in either case."""
    random = np.random.default_rng(seed)
    x, y = pictures(random, 400)
    if normalised:
        of_channels = (0, 2, 3)
        x = (x - x.mean(of_channels, keepdims=True)) / x.std(of_channels, keepdims=True)
    net = Net(Setting(features=3 * SIZE * SIZE, rate=0.05), random)
    run = MadeRun(collections=COLLECTIONS)
    for step in range(steps):
        batch = random.choice(len(x), BATCH, replace=False)
        tensors = net.step(x[batch].reshape(BATCH, -1), y[batch])
        run.save(step, {"loss": tensors["loss"], "input_image": x[batch]}, mode=ModeKeys.TRAIN)
    return run.end()
