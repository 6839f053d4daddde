"""For each rule a training with its illness, the healthy twin of that, and how the rule is asked.

The twin differs in what makes the training ill, and in nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smdebug.files.names import index_key
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import MadeRun
from tests.smdebug_rules.support import fires_at
from tests.trainings.nets import Setting, trained
from tests.trainings.trees import boosted

Training = Callable[[int], MadeRun]


@dataclass(frozen=True)
class Illness:
    """One rule's case: the trainings by seed, and the parameters of the rule."""

    rule: str
    what: str
    ill: Training
    healthy: Training
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first_step: int = 0

    def fires(self, *, ill: bool, seed: int) -> bool:
        """Does the rule find anything in that training?"""
        run = (self.ill if ill else self.healthy)(seed)
        parameters = dict(self.parameters)
        if self.rule == "SimilarAcrossRuns":
            parameters["other_trial"] = self.healthy(seed).trial("other")
        rule = CATALOG[self.rule].load()(run.trial(), **parameters)
        return bool(fires_at(rule, self.first_step))


def _net(
    rule: str, what: str, healthy: Setting, told: Mapping[str, Any], **options: Any
) -> Illness:
    def training(setting: Setting) -> Training:
        return lambda seed: trained(setting, seed)

    return Illness(rule, what, training(replace(healthy, **told)), training(healthy), **options)


def _images(mean: float, std: float) -> Training:
    def run(seed: int) -> MadeRun:
        random, made = np.random.default_rng(seed), MadeRun()
        for step in range(6):
            pixels = random.beta(2, 3, (120, 3, 8, 8))  # between 0 and 1, as pictures are
            made.save(step, {"input_image": ((pixels - mean) / std).astype(np.float32)})
        return made.end()

    return run


def _sentences(longest: int) -> Training:
    def run(seed: int) -> MadeRun:
        random, made = np.random.default_rng(seed), MadeRun()
        for step in range(4):
            tokens = random.integers(1, 500, (32, 40))
            lengths = random.integers(longest // 2, longest + 1, 32)
            tokens[np.arange(40) >= lengths[:, None]] = 0
            made.save(step, {"embedding0_input_0": tokens})
        return made.end()

    return run


def _at_times(pause: float) -> Training:
    def run(seed: int) -> MadeRun:
        random, made, now = np.random.default_rng(seed), MadeRun(), 1_700_000_000.0
        for step in range(12):
            made.save(step, {"loss": np.float32(1)})
            now += random.uniform(20, 60) + (pause if step == 7 else 0)
            key = index_key(step, "worker_0")
            told = json.loads(made.storage.read(key))
            told["meta"]["saved_at"] = now
            made.storage.write(key, json.dumps(told).encode())
        return made.end()

    return run


def _trees(depth: int, relevant: int) -> Training:
    return lambda seed: boosted(depth=depth, relevant=relevant, seed=seed)


_PLAIN = Setting()
ILLNESSES = (
    _net("VanishingGradient", "a deep net of sigmoids", Setting("relu", depth=9, rate=0.05),
        {"activation": "sigmoid", "scale": 0.5}),
    _net("ExplodingTensor", "a learning rate that is far too large", _PLAIN, {"rate": 1e6}),
    Illness("SimilarAcrossRuns", "another learning rate than the run compared with",
        lambda seed: trained(replace(_PLAIN, rate=0.21), seed), lambda seed: trained(_PLAIN, seed)),
    _net("WeightUpdateRatio", "a learning rate of next to nothing", _PLAIN, {"rate": 1e-10}),
    _net("AllZero", "weights that begin with zeros", _PLAIN, {"scale": 0.0},
        parameters={"collection_names": "weights,gradients"}),
    _net("UnchangedTensor", "a layer that is frozen", _PLAIN, {"frozen": 1},
        parameters={"collection_names": "weights"}),
    _net("LossNotDecreasing", "a learning rate that is too large", _PLAIN, {"rate": 40.0}),
    _net("PoorWeightInitialization", "weights that grow from layer to layer", Setting(depth=4, rate=0.05),
        {"growth": 3.0}),
    _net("SaturatedActivation", "biases that are far too large", Setting("tanh"), {"bias": 30.0}),
    _net("DeadRelu", "biases that are far below zero", _PLAIN, {"bias": -40.0}),
    _net("TensorVariance", "activations that grow from layer to layer", Setting(depth=4, rate=0.05),
        {"growth": 3.0}, parameters={"tensor_regex": "relu_input", "max_threshold": 200}),
    _net("Overfit", "few samples, some with wrong labels",
        Setting(samples=1200, noise=0.3, evaluate_every=10, steps=100),
        {"samples": 40}, parameters={"patience": 2, "ratio_threshold": 0.5}),
    _net("Overtraining", "a training that goes on after it has learnt all",
        Setting(rate=0.02, evaluate_every=2, steps=60),
        {"rate": 0.5, "steps": 150}, parameters={"delta": 0.02}),
    Illness("StalledTrainingRule", "a pause of an hour", _at_times(3600), _at_times(0)),
    _net("ClassImbalance", "one class in fifty", Setting(samples=600, rate=0.5),
        {"frequencies": (30.0, 30.0, 1.0)}, first_step=15),
    _net("Confusion", "two classes that cannot be told apart", Setting(distance=4.0, rate=0.5),
        {"alike": True}, first_step=25),
    Illness("CheckInputImages", "pictures from 0 to 1 that are not centred", _images(0.0, 1.0),
        _images(0.4, 0.2), {"regex": "input_image"}),
    Illness("NLPSequenceRatio", "sentences that are mostly padding", _sentences(18), _sentences(40)),
    Illness("TreeDepth", "trees that may grow eight deep", _trees(8, 8), _trees(3, 8)),
    Illness("FeatureImportanceOverweight", "two features that tell everything", _trees(3, 2),
        _trees(3, 12)),
)  # fmt: skip
