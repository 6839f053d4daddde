"""Runs as the default plan saves them, made of a few numbers, so that a test defines what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

import smdebug
from smdebug import modes
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.observations import ObservedTensor
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.arrays.measurer import measure
from smdebug.saving.observations.observer import Observer
from smdebug.saving.planning.step_clock import StepClock
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG

LAYERS = ("0", "2", "4")
PARAMETERS = tuple(f"Net_{layer}.{part}" for layer in LAYERS for part in ("weight", "bias"))
MODULES = [
    ["Net", "Net", False],
    ["0", "Linear", False],
    ["1", "ReLU", False],
    ["2", "Linear", False],
    ["3", "Tanh", False],
    ["4", "Linear", False],
]
TERM = {
    "criterion": "cross entropy",
    "given": "",
    "rows": 32,
    "classes": 10,
    "targets": 32,
    "classes_seen": 10,
    "largest_class": 3,
    "largest_share": 0.125,
}
FACTS: Mapping[str, Any] = {
    "training": True,
    "gradients": True,
    "other_mode": [],
    "shapes": [[32, 8]],
    "distinct_rows": 32,
    "optimizer_steps": True,
    "backward_passes": 1,
    "gradients_were_reset": True,
    "loss": {"factor": 1.0, "broadcast": None, "terms": [TERM]},
}


class Run:
    """A healthy run of a small classifier; a test changes what it wants before a step is written."""

    def __init__(self, place: Any):
        self.place = str(place)
        self.observer = Observer(FrameworkAdapter(), lambda message, kind: None)
        self.observations = self.observer.observations
        self.random = np.random.default_rng(0)
        every_step = smdebug.SaveConfig(save_interval=1)
        self.hook = smdebug.Hook(self.place, include_regex=["^smdebug/"], save_config=every_step)
        self.step = 0
        self.mode_steps = {modes.TRAIN: 0, modes.EVAL: 0}
        optimizer = {"class": "SGD", "groups": [{"parameters": list(PARAMETERS), "others": 0}]}
        self.lasting: dict[str, Any] = {
            "modules": MODULES,
            "frozen": [],
            "optimizers": [optimizer],
        }
        self.facts: dict[str, Any] = copy.deepcopy(dict(FACTS))
        self.loss: float | None = 2.3
        self.rate: float | None = 0.1
        self.kinds: dict[str, dict[str, np.ndarray]] = {}
        self.refresh()

    def normal(self, *shape: int, std: float = 1.0) -> np.ndarray:
        return self.random.normal(0, std, shape).astype(np.float32)

    def refresh(self) -> None:
        """Draw what an ordinary step has."""
        shapes = {"weight": (16, 16), "bias": (16,)}
        of_name = {name: shapes[name.rpartition(".")[2]] for name in PARAMETERS}
        outputs = {f"{layer}_output_0": self.normal(32, 16) for layer in LAYERS}
        outputs["1_output_0"] = np.maximum(outputs["0_output_0"], 0)
        outputs["3_output_0"] = np.tanh(outputs["2_output_0"])
        self.kinds = {
            "parameters": {name: self.normal(*shape, std=0.1) for name, shape in of_name.items()},
            "gradients": {
                f"gradient/{name}": self.normal(*shape, std=0.01) for name, shape in of_name.items()
            },
            "updates": {f"update/{name}": self.normal(*shape, std=0.001) for name, shape in of_name.items()},
            "outputs": {**dict(sorted(outputs.items())), "Net_output_0": self.normal(32, 10)},
            "inputs": {"Net_input_0": self.normal(32, 8)},
        }

    def write(self, mode: Any = modes.TRAIN, steps: int = 1) -> Run:
        """Write a step as it is now, and draw the next one."""
        for _ in range(steps):
            number = self.mode_steps[mode]
            clock = StepClock.resumed(self.step, {mode: number}, untouched=-1).in_mode(mode)
            if self.loss is not None:
                self.observer.carry("loss", self.loss, clock)
            if self.rate is not None:
                self.observer.carry("learning_rate/0/0", self.rate, clock)
            self.observations.note_lasting(**copy.deepcopy(self.lasting))
            self.observations.note(**copy.deepcopy(self.facts))
            for kind, arrays in self.kinds.items():
                for name, array in arrays.items():
                    tensor = ObservedTensor(name, array.shape, str(array.dtype))
                    digest = kind in ("parameters", "inputs")
                    self.observations.observe(kind, tensor, measure(array, digest=digest))
            with self.hook.step(mode):
                for name, make, *_ in self.observations.hand_over(self.step).tensors():
                    self.hook.record(name, make())
            self.step += 1
            self.mode_steps[mode] += 1
            self.refresh()
        return self

    def losses(self, *losses: float, mode: Any = modes.TRAIN) -> Run:
        """Write a step for each of these losses."""
        for loss in losses:
            self.loss = loss
            self.write(mode)
        return self

    def evaluate(self, rule: str) -> list[tuple[int, Any]]:
        """End the run and evaluate a rule at all steps; return each finding with its step."""
        self.hook.close()
        trial = create_trial(self.place)
        made = CATALOG[rule].load()(trial)
        return findings_of(made, trial.steps())


def findings_of(rule: Any, steps: list[int]) -> list[tuple[int, Any]]:
    """Evaluate a rule at these steps; return each finding with its step."""
    found = []
    for step in steps:
        try:
            rule.invoke(step)
        except RuleEvaluationConditionMet as met:
            found += [(step, finding) for finding in met.findings]
    return found
