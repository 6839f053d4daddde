"""`make bench-default-rules`: how fast the default rules evaluate a saved run, together on one core."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import defaultdict
from operator import itemgetter
from pathlib import Path

import numpy as np

import smdebug
from bench import ranks
from smdebug import modes
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.observations import ObservedTensor
from smdebug.logger import get_logger
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.arrays.measurer import measure
from smdebug.saving.observations.observer import Observer
from smdebug.saving.planning.step_clock import StepClock
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG

WANTED = 500.0
"""Steps a second that the whole set has to reach."""
_TERM = {
    "criterion": "cross entropy",
    "given": "",
    "rows": 64,
    "classes": 10,
    "targets": 64,
    "classes_seen": 10,
    "largest_class": 3,
    "largest_share": 0.125,
}


def write_run(place: str, steps: int, tensors: int) -> None:
    """Write a run of an ordinary training, as the default plan saves it: `tensors` rows a step."""
    every_step = smdebug.SaveConfig(save_interval=1)
    layers = tensors // (2 * 3 + 2)  # weight and bias of three kinds, and the outputs of two modules
    rng = np.random.default_rng(0)
    observer = Observer(FrameworkAdapter(), lambda message, kind: None)
    observations = observer.observations
    observations.note_lasting(
        modules=[["Net", "Net", False]]
        + [[f"{n}{k}", cls, False] for n in range(layers) for k, cls in (("", "Linear"), ("a", "ReLU"))],
        frozen=[],
        optimizers=[
            {
                "class": "Adam",
                "groups": [
                    {
                        "parameters": [f"Net_{n}.{p}" for n in range(layers) for p in ("weight", "bias")],
                        "others": 0,
                    }
                ],
            }
        ],
    )
    weights = [rng.normal(0, 0.1, (16, 16)).astype(np.float32) for _ in range(layers)]
    with smdebug.Hook(place, include_regex=["^smdebug/"], save_config=every_step) as hook:
        for step in range(steps):
            clock = StepClock.resumed(step, {modes.TRAIN: step}, untouched=-1).in_mode(modes.TRAIN)
            for extra, chance in enumerate(rng.normal(0, 0.05, 10)):
                loss = 0.3 + 2 * 0.997 ** (10 * step + extra) + chance
                observer.carry("loss", float(np.float32(loss)), clock)
            observer.carry("learning_rate/0/0", 1e-3, clock)
            observations.note(
                training=True,
                gradients=True,
                other_mode=[],
                shapes=[[64, 16]],
                distinct_rows=64,
                optimizer_steps=True,
                backward_passes=1,
                gradients_were_reset=True,
                loss={"factor": 1.0, "broadcast": None, "terms": [_TERM]},
            )
            for n, weight in enumerate(weights):
                gradient, update = rng.normal(0, 1e-3, (2, *weight.shape)).astype(np.float32)
                for kind, prefix, array in (
                    ("parameters", "", weight),
                    ("gradients", "gradient/", gradient),
                    ("updates", "update/", update),
                ):
                    for name, values in (("weight", array), ("bias", array[0])):
                        tensor = ObservedTensor(f"{prefix}Net_{n}.{name}", values.shape, "float32")
                        observations.observe(kind, tensor, measure(values, digest=kind == "parameters"))
                weight += update
                for name in (str(n), f"{n}a"):
                    tensor = ObservedTensor(f"{name}_output_0", weight.shape, "float32")
                    observations.observe("outputs", tensor, measure(weight))
            batch = rng.normal(0, 1, (64, 16)).astype(np.float32)
            inputs = ObservedTensor("Net_input_0", batch.shape, "float32")
            observations.observe("inputs", inputs, measure(batch, digest=True))
            with hook.step(modes.TRAIN):
                for name, make, *_ in observations.hand_over(int(hook.step)).tensors():
                    hook.record(name, make())


def judge(place: str) -> tuple[float, dict[str, float], int]:
    """Evaluate the set step by step; return steps a second, seconds by rule, and how often a rule fired."""
    trial = create_trial(place)
    steps = trial.steps()
    rules = [entry.load()(trial) for entry in CATALOG.values()]
    spent: defaultdict[str, float] = defaultdict(float)
    fired = 0
    begun = now = time.process_time()
    for step in steps:
        for rule in rules:
            before = now
            try:
                rule.invoke(step)
            except RuleEvaluationConditionMet:
                fired += 1
            now = time.process_time()
            spent[rule.rule_name] += now - before
    return len(steps) / (now - begun), spent, fired


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if the set is slower than it has to be."""
    parser = argparse.ArgumentParser(prog="python -m bench.default_rules", description=__doc__)
    parser.add_argument("--steps", type=int, default=2000, help="saved steps (2,000)")
    parser.add_argument("--tensors", type=int, default=200, help="tensors of each step (200)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as folder:
        place = str(Path(folder) / "run")
        write_run(place, options.steps, options.tensors)
        rate, spent, fired = judge(place)
    for name, seconds in sorted(spent.items(), key=itemgetter(1), reverse=True):
        print(f"{name:22} {1e6 * seconds / options.steps:8.1f} us a step")
    print(f"{len(spent)} rules, {options.steps} steps of {options.tensors} tensors, fired {fired} times")
    print(f"{rate:.0f} steps a second (at least {WANTED:.0f})")
    is_fast = ranks.report()
    return 0 if rate >= WANTED and is_fast else 1


if __name__ == "__main__":
    get_logger().setLevel(logging.ERROR)
    sys.exit(main())
