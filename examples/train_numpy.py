"""A small network in numpy, in two variants: a healthy one, and one whose gradients vanish.

    python examples/train_numpy.py --out-dir /tmp/healthy
    python examples/train_numpy.py --out-dir /tmp/failing --failing

The healthy network has ReLUs and He initialization. The failing one has sigmoids and small weights in twelve
layers: each layer passes on about a tenth of the gradient, so the first layers do not learn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

import smdebug
from smdebug import SaveConfig, modes
from smdebug.exceptions import TrainingStopped

LAYERS, WIDTH, BATCH = 12, 16, 64
Array = np.ndarray


class Network:
    """Fully connected layers and a logistic output."""

    def __init__(self, failing: bool, rng: np.random.Generator):
        self.failing = failing
        sizes = [2, *[WIDTH] * (LAYERS - 1), 1]
        self.weights = [
            rng.normal(0, 0.1 if failing else np.sqrt(2 / a), (a, b)).astype(np.float32)
            for a, b in pairwise(sizes)
        ]
        self.biases = [np.zeros(b, np.float32) for b in sizes[1:]]

    def forward(self, x: Array) -> list[Array]:
        outputs = [x]
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            z = outputs[-1] @ w + b
            outputs.append(z if i == LAYERS - 1 else self._activate(z))
        return outputs

    def gradients(self, outputs: list[Array], y: Array) -> tuple[float, dict[str, Array]]:
        logits = outputs[-1]
        loss = float(np.mean(np.logaddexp(0, logits) - y * logits))
        delta = (1 / (1 + np.exp(-logits)) - y) / len(y)
        found: dict[str, Array] = {}
        for i in reversed(range(LAYERS)):
            found[f"gradient/layer{i:02}_weight"] = outputs[i].T @ delta
            found[f"gradient/layer{i:02}_bias"] = delta.sum(axis=0)
            if i:
                delta = (delta @ self.weights[i].T) * self._slope(outputs[i])
        return loss, found

    def update(self, gradients: dict[str, Array], rate: float) -> None:
        for i in range(LAYERS):
            self.weights[i] -= rate * gradients[f"gradient/layer{i:02}_weight"]
            self.biases[i] -= rate * gradients[f"gradient/layer{i:02}_bias"]

    def _activate(self, z: Array) -> Array:
        return 1 / (1 + np.exp(-z)) if self.failing else np.maximum(z, 0)

    def _slope(self, a: Array) -> Array:
        return a * (1 - a) if self.failing else (a > 0).astype(np.float32)


def batches(steps: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield points in a square, and whether each is inside a circle."""
    for _ in range(steps):
        x = rng.uniform(-1, 1, (BATCH, 2)).astype(np.float32)
        yield x, (np.square(x).sum(axis=1, keepdims=True) < 0.6).astype(np.float32)


def hook_for(out_dir: str, save_interval: int | None) -> smdebug.Hook:
    """Return a hook that saves statistics, or with an interval the tensors themselves."""
    if save_interval is None:
        return smdebug.Hook(out_dir)
    return smdebug.Hook(
        out_dir,
        include_collections=["weights", "gradients"],
        save_config=SaveConfig(save_interval=save_interval),
    )


def train(out_dir: str, *, failing: bool, steps: int, save_interval: int | None, pause: float = 0.0) -> None:
    rng = np.random.default_rng(7)
    network = Network(failing, rng)
    with hook_for(out_dir, save_interval) as hook:
        for x, y in batches(steps, rng):
            with hook.step(modes.TRAIN):
                outputs = network.forward(x)
                loss, gradients = network.gradients(outputs, y)
                hook.record("loss", loss)
                hook.record_all(gradients)
                hook.record_all({f"layer{i:02}_weight": w for i, w in enumerate(network.weights)})
            network.update(gradients, rate=0.05)
            time.sleep(pause)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out-dir", required=True, help="a folder, or s3://bucket/prefix")
    parser.add_argument("--failing", action="store_true", help="train the network that cannot learn")
    # The old name of the option.
    parser.add_argument("--ill", dest="failing", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-interval", type=int, default=20)
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="save statistics of every tensor instead of values",
    )
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps")
    arguments = parser.parse_args()
    try:
        train(
            arguments.out_dir,
            failing=arguments.failing,
            steps=arguments.steps,
            save_interval=None if arguments.statistics else arguments.save_interval,
            pause=arguments.pause,
        )
    except TrainingStopped as stopped:  # everything saved is written
        print(f"stopped: {stopped}")


if __name__ == "__main__":
    main()
