"""Small networks that are really trained, forward and backward by hand, and saved as a hook would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from smdebug.mode_keys import ModeKeys
from tests.rules.made_runs import MadeRun

Array = Any

COLLECTIONS = {
    "losses": ["^loss$"],
    "weights": ["^layer.*/weight$"],
    "gradients": ["^gradient/"],
    "relu_input": ["relu_input"],
    "relu_output": ["relu_output"],
    "labels": ["^labels$"],
    "predictions": ["^predictions$"],
}

FUNCTIONS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(z.dtype)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "sigmoid": (
        lambda z: 1 / (1 + np.exp(-np.clip(z, -80, 80))),
        lambda z: np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2,
    ),
}


@dataclass(frozen=True)
class Setting:
    """How a network is built, initialised and trained; the defaults are healthy."""

    activation: str = "relu"
    depth: int = 2
    width: int = 24
    scale: float = 1.0  # of the initial weights, 1 is that of He or Glorot
    growth: float = 1.0  # from layer to layer
    bias: float = 0.0
    rate: float = 0.2
    frozen: int | None = None  # a layer that does not learn
    steps: int = 30
    samples: int = 240
    classes: int = 3
    alike: bool = False  # the last two classes cannot be told apart
    frequencies: tuple[float, ...] = ()
    distance: float = 2.0  # between the classes
    noise: float = 0.0  # labels that are just wrong
    evaluate_every: int = 0
    features: int = 8


class Net:
    """Layers of one width and an output for each class."""

    def __init__(self, setting: Setting, random: np.random.Generator):
        self.setting = setting
        sizes = [setting.features, *[setting.width] * setting.depth, setting.classes]
        gain = 2.0 if setting.activation == "relu" else 1.0
        self.weights = [
            (
                random.normal(0, np.sqrt(gain / before), (before, after)) * setting.scale * setting.growth**at
            ).astype(np.float32)
            for at, (before, after) in enumerate(pairwise(sizes))
        ]
        self.biases = [np.full(after, setting.bias, np.float32) for after in sizes[1:]]
        self.biases[-1][:] = 0

    def forward(self, x: Array) -> tuple[Array, list[Array], list[Array]]:
        """Scores of the classes, what goes into each activation, and what comes out of it."""
        function, _ = FUNCTIONS[self.setting.activation]
        inputs, outputs = [], [x]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs.append(outputs[-1] @ weight + bias)
            outputs.append(function(inputs[-1]).astype(np.float32))
        return outputs[-1] @ self.weights[-1] + self.biases[-1], inputs, outputs

    def step(self, x: Array, y: Array) -> dict[str, Array]:
        """One step of gradient descent, and all that there is to save of it."""
        _, derivative = FUNCTIONS[self.setting.activation]
        scores, inputs, outputs = self.forward(x)
        loss, delta = cross_entropy(scores, y)
        saved: dict[str, Array] = {"loss": loss, "labels": y, "predictions": scores.argmax(axis=1)}
        for at, (before, after) in enumerate(zip(inputs, outputs[1:], strict=True)):
            saved[f"layer{at}_{self.setting.activation}_input"] = before
            saved[f"layer{at}_{self.setting.activation}_output"] = after
        for at in reversed(range(len(self.weights))):
            gradient = (outputs[at].T @ delta).astype(np.float32)
            saved[f"gradient/layer{at}/weight"] = gradient
            saved[f"layer{at}/weight"] = self.weights[at].copy()
            along_bias = delta.sum(axis=0)
            if at:
                delta = (delta @ self.weights[at].T) * derivative(inputs[at - 1])
            if at != self.setting.frozen:
                self.weights[at] = (self.weights[at] - self.setting.rate * gradient).astype(np.float32)
                self.biases[at] = (self.biases[at] - self.setting.rate * along_bias).astype(np.float32)
        return saved


def cross_entropy(scores: Array, y: Array) -> tuple[Array, Array]:
    """The loss, and its gradient by the scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    chances = np.exp(shifted)
    chances = chances / chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(chances[rows, y] + 1e-12).mean()
    delta = chances.copy()
    delta[rows, y] -= 1
    return np.float32(loss), (delta / len(y)).astype(np.float32)


def data(setting: Setting, random: np.random.Generator, centres: Array, samples: int) -> tuple[Array, Array]:
    """Points around the centre of their class."""
    frequencies = np.array(setting.frequencies or [1.0] * setting.classes)
    y = random.choice(setting.classes, samples, p=frequencies / frequencies.sum())
    x = centres[y] + random.normal(size=(samples, setting.features))
    wrong = random.random(samples) < setting.noise
    y[wrong] = random.integers(0, setting.classes, int(wrong.sum()))
    return x.astype(np.float32), y


def trained(setting: Setting, seed: int) -> MadeRun:
    """The run that the training leaves."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(setting.classes, setting.features))
    centres *= setting.distance * np.sqrt(2) / np.linalg.norm(centres, axis=1, keepdims=True)
    if setting.alike:
        centres[-1] = centres[-2]
    x, y = data(setting, random, centres, setting.samples)
    held_back = data(setting, random, centres, 400)
    net, run, step = Net(setting, random), MadeRun(collections=COLLECTIONS), 0
    with np.errstate(all="ignore"):
        for at in range(setting.steps):
            run.save(step, net.step(x, y), mode=ModeKeys.TRAIN)
            step += 1
            if setting.evaluate_every and at % setting.evaluate_every == setting.evaluate_every - 1:
                loss, _ = cross_entropy(net.forward(held_back[0])[0], held_back[1])
                run.save(step, {"loss": loss}, mode=ModeKeys.EVAL)
                step += 1
    return run.end()
