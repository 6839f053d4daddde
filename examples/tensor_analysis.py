"""The original's notebook "Tensor analysis using Amazon SageMaker Debugger", on numpy: why does it not learn?

    python examples/tensor_analysis.py --out-dir images

A small network is trained twice, once with weights from Uniform(1) and a low rate, once with He's and a
better one. Seven custom rules collect what it saves, under the names that MXNet gave it, and animations
show the distributions as training goes on: activations and their inputs, gradients, weights, inputs and
outputs of the layers. At the end the two are compared.
"""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np

import smdebug
from smdebug import SaveConfig, plots
from smdebug.exceptions import NoMoreData
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial

STEPS, SAVE_INTERVAL, BATCH = 200, 10, 64
SIZES = (64, 48, 32, 10)
LAYERS = ("conv0", "conv1", "dense0")
Array = np.ndarray


# The training


def digits(rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Ten noisy patterns of 8 by 8, in place of the handwritten ones."""
    patterns = rng.normal(size=(10, SIZES[0]))
    for _ in range(STEPS):
        labels = rng.integers(0, 10, BATCH)
        yield (patterns[labels] + rng.normal(0, 0.8, (BATCH, SIZES[0]))).astype(np.float32), labels


def train(out_dir: str, *, initializer: str, rate: float) -> None:
    rng = np.random.default_rng(2)
    shapes = list(pairwise(SIZES))
    if initializer == "uniform":
        weights = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    else:
        weights = [
            rng.normal(0, np.sqrt(2 / shape[0]), shape).astype(np.float32) for shape in shapes
        ]
    config = SaveConfig(save_interval=SAVE_INTERVAL)
    with smdebug.Hook(out_dir, save_all=True, save_config=config) as hook:
        for images, labels in digits(rng):
            with hook.step():
                loss, gradients, seen = one_step(weights, images, labels)
                hook.record("softmaxcrossentropyloss0_output_0", loss)
                hook.record_all(seen)
                hook.record_all(
                    {f"{name}_weight": w for name, w in zip(LAYERS, weights, strict=True)}
                )
                hook.record_all(
                    {
                        f"gradient/{name}_weight": g
                        for name, g in zip(LAYERS, gradients, strict=True)
                    }
                )
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient


def one_step(
    weights: list[Array], images: Array, labels: Array
) -> tuple[float, list[Array], dict[str, Array]]:
    """Loss, gradients, and what goes into and comes out of every layer."""
    seen: dict[str, Array] = {}
    inputs = [images]
    for name, weight in zip(LAYERS, weights, strict=True):
        z = inputs[-1] @ weight
        seen[f"{name}_input_0"], seen[f"{name}_output_0"] = inputs[-1], z
        if name != LAYERS[-1]:
            seen[f"{name}_relu_input_0"], seen[f"{name}_relu_output_0"] = z, np.maximum(z, 0)
            inputs.append(np.maximum(z, 0))
    z = z - z.max(axis=1, keepdims=True)
    chances = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    each = np.arange(len(labels))
    loss = float(-np.log(chances[each, labels] + 1e-12).mean())
    delta = chances
    delta[each, labels] -= 1
    delta /= len(labels)
    gradients: list[Array] = []
    for at in reversed(range(len(weights))):
        gradients.insert(0, inputs[at].T @ delta)
        if at:
            delta = (delta @ weights[at].T) * (inputs[at] > 0)
    return loss, gradients, seen


# The rules


class Collecting(Rule):
    """Keeps what it sees in `tensors` and never fires, as the notebook's rules do."""

    regex = ""
    without: str | None = None

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.tensors = collections.OrderedDict()

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(step=step, regex=self.regex):
            if self.without is None or self.without not in name:
                value = self.base_trial.tensor(name).value(step)
                self.tensors.setdefault(name, {})[step] = self.kept(value)
        return False

    def kept(self, value):
        return value


class ActivationOutputs(Collecting):
    """The mean over the batch: what is 0 there is a unit that has given nothing."""

    regex, without = ".*relu_output", "gradient"

    def kept(self, value):
        return np.sum(value, axis=0) / value.shape[0]


class ActivationInputs(ActivationOutputs):
    regex = ".*relu_input"


class GradientsLayer(Collecting):
    regex = ".*gradient"


class GradientsAcrossLayers(Rule):
    """The smallest and the largest variance of all layers' gradients, step by step."""

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.tensors = collections.OrderedDict()

    def invoke_at_step(self, step):
        trial = self.base_trial
        variances = [
            float(np.var(trial.tensor(name).value(step)))
            for name in trial.tensor_names(step=step, regex=".*gradient")
        ]
        if variances:
            self.tensors[step] = [min(variances), max(variances)]
        return False


class WeightRatio(Collecting):
    regex, without = ".*weight", "gradient"


class Inputs(Collecting):
    regex, without = ".*input", "relu"


class Outputs(Collecting):
    regex, without = "(conv|dense).*output", "relu"


def asked(rule: Rule) -> Rule:
    """The rule after it was shown every step."""
    with suppress(NoMoreData):  # the training has ended: that is expected
        invoke_rule(rule)
    return rule


# The story


def story(folder: Path) -> None:
    os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")
    train(str(folder / "bad"), initializer="uniform", rate=0.001)
    train(str(folder / "good"), initializer="he", rate=0.01)
    bad, good = create_trial(str(folder / "bad")), create_trial(str(folder / "good"))
    print(f"Steps: {bad.steps()[0]} to {bad.steps()[-1]}")

    for rule_class, file in (
        (ActivationOutputs, "activation_outputs"),
        (ActivationInputs, "activation_inputs"),
        (GradientsLayer, "gradients"),
        (WeightRatio, "weights"),
        (Inputs, "layer_inputs"),
        (Outputs, "layer_outputs"),
    ):
        rule = asked(rule_class(bad))
        place = plots.create_interactive_matplotlib_histogram(
            rule.tensors, filename=folder / f"{file}.gif"
        )
        print(f"{rule.rule_name:18} {len(rule.tensors)} tensors, {place}")

    for name, trial in (("bad", bad), ("good", good)):
        variances = asked(GradientsAcrossLayers(trial)).tensors
        first, last = next(iter(variances)), next(reversed(variances))
        for step in (first, last):
            low, high = variances[step]
            print(f"{name:5} step {step:4}: variance of gradients {low:.2e} to {high:.2e}")

    compared = {}
    for name, trial in (("bad", bad), ("good", good)):
        gradients = asked(GradientsLayer(trial)).tensors
        for layer in ("conv0", "conv1"):
            compared[f"gradient/{layer}_weight_{name}_hyperparameters"] = gradients[
                f"gradient/{layer}_weight"
            ]
    plots.create_interactive_matplotlib_histogram(
        compared, filename=folder / "gradients_comparison.gif"
    )
    runs = {"bad": bad, "good": good}
    plots.line(runs, "loss").save(folder / "loss.png")
    plots.variance_across_layers(runs, "gradient").save(folder / "variance.png")
    plots.dead_units(runs, "relu_output").save(folder / "dead_units.png")
    for name, trial in runs.items():
        loss = trial.tensor("softmaxcrossentropyloss0_output_0")
        for step in (trial.steps()[0], trial.steps()[-1]):
            print(f"{name:5} step {step:4}: loss {loss.value(step)[0]:.3f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out-dir", default="images", help="where runs and pictures go")
    story(Path(arguments.parse_args().out_dir))


if __name__ == "__main__":
    main()
