"""For each rule a failing training, its healthy twin, and the rule's parameters.

The twins differ only in what makes the training fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smdebug.exceptions import NoMoreData
from smdebug.files.names import index_key
from smdebug.rules.rule_invoker import evaluations
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import MadeRun
from tests.smdebug_rules.support import fires_at
from tests.trainings import pictures, sentences, stalling
from tests.trainings.nets import Setting, trained
from tests.trainings.trees import boosted

Training = Callable[[int], MadeRun]


@dataclass(frozen=True)
class Failure:
    """One rule's case: the trainings by seed, and the parameters of the rule."""

    rule: str
    what: str
    failing: Training
    healthy: Training
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first_step: int = 0

    def fires(self, *, failing: bool, seed: int) -> bool:
        """Return whether the rule finds anything in that training."""
        run = (self.failing if failing else self.healthy)(seed)
        parameters = dict(self.parameters)
        if self.rule == "SimilarAcrossRuns":
            parameters["other_trial"] = self.healthy(seed).trial("other")
        rule = CATALOG[self.rule].load()(run.trial(), **parameters)
        return bool(fires_at(rule, self.first_step))


@dataclass(frozen=True)
class Stall:
    """A training in a process of its own, watched while it runs, or after it has stalled."""

    rule: str
    what: str
    threshold: int

    def fires(self, *, failing: bool, seed: int) -> bool:
        with stalling.going_on(seed, loader_dies=failing) as trial:
            # The time that the process takes to start does not count.
            parameters = {"threshold": self.threshold, "before_first_step": False}
            watching = evaluations(CATALOG[self.rule].load()(trial, **parameters))
            with suppress(NoMoreData):
                return any(evaluation.met is not None for evaluation in watching)
        return False


def _net(rule: str, what: str, healthy: Setting, changes: Mapping[str, Any], **options: Any) -> Failure:
    def training(setting: Setting) -> Training:
        return lambda seed: trained(setting, seed)

    return Failure(rule, what, training(replace(healthy, **changes)), training(healthy), **options)


def _at_times(pause: float) -> Training:
    def run(seed: int) -> MadeRun:
        random, made, now = np.random.default_rng(seed), MadeRun(), 1_700_000_000.0
        for step in range(12):
            made.save(step, {"loss": np.float32(1)})
            now += random.uniform(20, 60) + (pause if step == 7 else 0)
            key = index_key(step, "worker_0")
            index = json.loads(made.storage.read(key))
            index["meta"]["saved_at"] = now
            index["meta"].pop("file_crc32c", None)
            made.storage.write(key, json.dumps(index).encode())
        return made.end()

    return run


def _trees(depth: int, relevant: int) -> Training:
    return lambda seed: boosted(depth=depth, relevant=relevant, seed=seed)


_PLAIN = Setting()
FAILURES: tuple[Failure | Stall, ...] = (
    _net("VanishingGradient", "a deep net of sigmoids", Setting("relu", depth=9, rate=0.05),
        {"activation": "sigmoid", "scale": 0.5}),
    _net("ExplodingTensor", "a learning rate that is far too large", _PLAIN, {"rate": 1e6}),
    Failure("SimilarAcrossRuns", "another learning rate than the run compared with",
        lambda seed: trained(replace(_PLAIN, rate=0.21), seed), lambda seed: trained(_PLAIN, seed)),
    _net("WeightUpdateRatio", "a learning rate close to zero", _PLAIN, {"rate": 1e-10}),
    _net("AllZero", "weights that begin with zeros", _PLAIN, {"scale": 0.0},
        parameters={"collection_names": "weights,gradients"}),
    _net("UnchangedTensor", "a layer that is frozen", _PLAIN, {"frozen": 1},
        parameters={"collection_names": "weights"}),
    _net("LossNotDecreasing", "a learning rate that is too large", Setting(rate=0.1), {"rate": 40.0}),
    _net("PoorWeightInitialization", "weights that grow from layer to layer", Setting(depth=4, rate=0.05),
        {"growth": 3.0}),
    _net("SaturatedActivation", "biases that are far too large", Setting("tanh"), {"bias": 30.0}),
    _net("DeadRelu", "biases that are far below zero", _PLAIN, {"bias": -40.0}),
    _net("TensorVariance", "activations that grow from layer to layer", Setting(depth=4, rate=0.05),
        {"growth": 3.0}, parameters={"tensor_regex": "relu_input", "max_threshold": 200}),
    _net("Overfit", "few samples, some with wrong labels",
        Setting(samples=800, noise=0.3, evaluate_every=10, steps=100),
        {"samples": 40}, parameters={"patience": 2, "ratio_threshold": 0.5}),
    _net("Overtraining", "a training that goes on after the loss has converged",
        Setting(rate=0.02, evaluate_every=2, steps=60),
        {"rate": 0.5, "steps": 150}, parameters={"delta": 0.02}),
    Failure("StalledTrainingRule", "a pause of an hour", _at_times(3600), _at_times(0)),
    Stall("StalledTrainingRule", "a data loader that dies, and a training that waits for it", 4),
    _net("ClassImbalance", "one class in fifty", Setting(samples=600, rate=0.5),
        {"frequencies": (30.0, 30.0, 1.0)}, first_step=15),
    _net("Confusion", "two classes that cannot be told apart", Setting(distance=4.0, rate=0.1),
        {"alike": True}, first_step=25),
    Failure("CheckInputImages", "pictures from 0 to 1 that are not normalised",
        lambda seed: pictures.trained(seed, normalised=False),
        lambda seed: pictures.trained(seed, normalised=True), {"regex": "input_image"}),
    Failure("NLPSequenceRatio", "sentences padded to twice the length of the longest",
        lambda seed: sentences.trained(seed, padded_to=40),
        lambda seed: sentences.trained(seed, padded_to=None)),
    Failure("TreeDepth", "trees that may grow eight deep", _trees(8, 8), _trees(3, 8)),
    Failure("FeatureImportanceOverweight", "two features that decide everything", _trees(3, 2),
        _trees(3, 12)),
)  # fmt: skip
