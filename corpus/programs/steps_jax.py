"""Trainings with JAX: healthy, and with faults. Nothing outside sees a step of JAX, so each has its hook."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import datasets

from corpus.cases import PLACE, fault, healthy

Tree = dict[str, Any]
Change = Callable[[int, Tree, Tree], Tree]
"""Of a step's number, the parameters and their gradients: the parameters that the next step begins with."""


def _parameters(sizes: tuple[int, ...], seed: int) -> Tree:
    random = np.random.default_rng(seed)
    return {
        f"layer{number}": {
            "kernel": random.normal(0, np.sqrt(2 / before), (before, after)).astype(np.float32),
            "bias": np.zeros(after, np.float32),
        }
        for number, (before, after) in enumerate(pairwise(sizes))
    }


def _logits(parameters: Tree, inputs: Any) -> Any:
    import jax

    for number in range(len(parameters)):
        layer = parameters[f"layer{number}"]
        inputs = inputs @ layer["kernel"] + layer["bias"]
        if number < len(parameters) - 1:
            inputs = jax.nn.relu(inputs)
    return inputs


def _cross_entropy(parameters: Tree, inputs: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    scores = jax.nn.log_softmax(_logits(parameters, inputs))
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


def _squared_error(parameters: Tree, inputs: Any, target: Any) -> Any:
    return ((_logits(parameters, inputs)[:, 0] - target) ** 2).mean()


def _descent(rate: float) -> Change:
    import jax

    def change(step: int, parameters: Tree, gradients: Tree) -> Tree:
        result: Tree = jax.tree.map(lambda p, g: p - rate * g, parameters, gradients)
        return result

    return change


def _adam(rate: float, parameters: Tree) -> Change:
    import optax

    optimizer = optax.adam(rate)
    state = [optimizer.init(parameters)]

    def change(step: int, parameters: Tree, gradients: Tree) -> Tree:
        updates, state[0] = optimizer.update(gradients, state[0], parameters)
        result: Tree = optax.apply_updates(parameters, updates)
        return result

    return change


def _train(
    loss_of: Callable[..., Any],
    parameters: Tree,
    data: tuple[Any, Any],
    change: Change,
    seed: int,
    *,
    steps: int = 150,
) -> None:
    """The loop, with the hook as its documentation has it."""
    import jax

    import smdebug.jax as smd

    value_and_gradients = jax.jit(jax.value_and_grad(loss_of))
    random = np.random.default_rng(seed)
    with smd.Hook(PLACE.get()) as hook:
        for step in range(steps):
            rows = random.choice(len(data[1]), 64, replace=False)
            inputs, labels = data[0][rows], data[1][rows]
            with hook.step(smd.modes.TRAIN):
                loss, gradients = value_and_gradients(parameters, inputs, labels)
                hook.record("loss", loss)
                hook.record_weights(parameters)
                hook.record_gradients(gradients)
            parameters = change(step, parameters, gradients)


def _digits() -> tuple[Any, Any]:
    images, labels = datasets.load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), labels


@healthy(framework="jax", held_out=False)
def jax_dense_network(seed: int) -> None:
    parameters = _parameters((64, 48, 48, 10), seed)
    _train(_cross_entropy, parameters, _digits(), _adam(2e-3, parameters), seed)


@healthy(framework="jax", held_out=True)
def jax_plain_descent(seed: int) -> None:
    _train(_cross_entropy, _parameters((64, 32, 10), seed), _digits(), _descent(0.2), seed)


@healthy(framework="jax", held_out=False)
def jax_regression(seed: int) -> None:
    features, target = datasets.load_diabetes(return_X_y=True)
    features = ((features - features.mean(0)) / features.std(0)).astype(np.float32)
    target = ((target - target.mean()) / target.std()).astype(np.float32)
    parameters = _parameters((10, 16, 1), seed)
    _train(_squared_error, parameters, (features, target), _adam(3e-3, parameters), seed)


@healthy(framework="jax", held_out=False)
def jax_frozen_first_layer(seed: int) -> None:
    """Fine-tuning, of which the hook is not given the updates."""
    parameters = _parameters((64, 24, 48, 48, 10), seed)
    adam = _adam(2e-3, parameters)

    def change(step: int, before: Tree, gradients: Tree) -> Tree:
        return {**adam(step, before, gradients), "layer0": before["layer0"]}

    _train(_cross_entropy, parameters, _digits(), change, seed)


@fault(
    "lost update",
    r"layer1",
    visible_from=1,
    source="a tree put together wrongly",
    held_out=False,
    framework="jax",
)
def jax_layer_whose_update_is_dropped(seed: int, faulty: bool) -> None:
    parameters = _parameters((64, 48, 48, 10), seed)
    adam = _adam(2e-3, parameters)

    def change(step: int, before: Tree, gradients: Tree) -> Tree:
        after = adam(step, before, gradients)
        return {**after, "layer1": before["layer1"]} if faulty else after

    _train(_cross_entropy, parameters, _digits(), change, seed)


@fault(
    "corruption",
    r"layer1/kernel",
    visible_from=60,
    source="a weight's bit flips",
    held_out=True,
    framework="jax",
)
def jax_bit_of_a_weight_flips(seed: int, faulty: bool) -> None:
    parameters = _parameters((64, 48, 48, 10), seed)
    descent = _descent(0.1)

    def change(step: int, before: Tree, gradients: Tree) -> Tree:
        after = descent(step, before, gradients)
        if faulty and step == 59:
            kernel = np.array(after["layer1"]["kernel"])
            kernel.view(np.int32)[5, 7] ^= 1 << 25
            after = {**after, "layer1": {**after["layer1"], "kernel": kernel}}
        return after

    _train(_cross_entropy, parameters, _digits(), change, seed)


@fault("exploding", r".*", source="classic", held_out=False, framework="jax", also=("learning rate",))
def jax_rate_far_too_large(seed: int, faulty: bool) -> None:
    parameters = _parameters((64, 48, 48, 10), seed)
    _train(_cross_entropy, parameters, _digits(), _descent(20.0 if faulty else 0.1), seed)
