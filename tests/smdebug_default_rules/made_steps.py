"""The same runs without files: what a rule reads of a step is made of arrays, once it is asked for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from smdebug import modes
from smdebug.files.observations import (
    DIGESTS,
    FACTS,
    SAMPLES,
    SERIES,
    STATISTICS,
    ObservationLayout,
    ObservedTensor,
    Rows,
)
from smdebug.numbers.digests import content_digest
from smdebug.numbers.rows import SAMPLE_SIZE, matrix_of
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules import made_runs

LIKE_WHOLE_TENSORS = ("parameters", "inputs")  # the kinds that have digests


class Steps(made_runs.Run):
    """A healthy run of a small classifier; a test changes what it wants before a step is written."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.step = 0
        self.saved_every = 1
        self.mode_steps = {modes.TRAIN: 0, modes.EVAL: 0}
        optimizer = {"class": "SGD", "groups": [{"parameters": list(made_runs.PARAMETERS), "others": 0}]}
        self.lasting = {"modules": made_runs.MODULES, "frozen": [], "optimizers": [optimizer]}
        self.facts = copy.deepcopy(dict(made_runs.FACTS))
        self.loss = 2.3
        self.rate: float | None = 0.1
        self.rates: dict[str, float] = {}
        self.seen: list[ObservedStep] = []
        self._source = Source()
        self._carried: dict[str, list[list[float]]] = {}
        self.kinds = {}
        self.refresh()

    def carry(self, name: str, value: float | None, mode: Any = modes.TRAIN) -> None:
        """Note a scalar of this step."""
        if value is not None:
            row = [self.step, mode.value, self.mode_steps[mode], value]
            self._carried.setdefault(name, []).append(row)

    def skip(self, *losses: float, mode: Any = modes.TRAIN) -> Steps:
        """Train steps that are not saved: their losses come with the next one that is."""
        for loss in losses:
            self.carry("loss", loss, mode)
            self.step += 1
            self.mode_steps[mode] += 1
        return self

    def write(self, mode: Any = modes.TRAIN, steps: int = 1) -> Steps:
        """Write a step as it is now, and draw the next one."""
        for _ in range(steps):
            self.carry("loss", self.loss, mode)
            self.carry("learning_rate/0/0", self.rate, mode)
            for name, rate in self.rates.items():
                self.carry(f"learning_rate/{name}", rate, mode)
            self.seen.append(self._source.step_of(self, mode, self._carried))
            self._carried = {}
            self.step += 1
            self.mode_steps[mode] += 1
            self.refresh()
        return self

    def evaluate(self, rule: str) -> list[tuple[int, Any]]:
        """Evaluate a rule at all steps; return each finding with its step."""
        return [(step, finding) for step, findings, _ in self.evaluations(rule) for finding in findings]

    def evaluations(self, rule: str) -> list[tuple[int, list[Any], str | None]]:
        """Return what a rule finds at each step, and why it could not check; "" if it only did not look."""
        made = CATALOG[rule].load()(SimpleNamespace(observations=SimpleNamespace(has_facts=True)))
        found = []
        for seen in self.seen:
            made._begin_evidence()
            made.observed = lambda step, seen=seen: seen
            made.invoke_at_step(seen.step)
            why = None if made.looked else made.not_checked or ""
            found.append((seen.step, list(made.findings), why))
        return found


def _observed(kind: str, arrays: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """What is kept of these arrays as they are now, each made when it is first asked for.

    A rule asks for a few kinds, and to measure all of them is most of a step's time.
    """
    now = [array.copy() for array in arrays.values()]
    matrices = cache(partial(matrix_of, now, SAMPLE_SIZE))
    made: dict[str, Callable[[], Any]] = {
        f"{STATISTICS}{kind}": lambda: matrices()[0],
        f"{SAMPLES}{kind}": lambda: matrices()[1],
    }
    if kind in LIKE_WHOLE_TENSORS:
        made[f"{DIGESTS}{kind}"] = cache(lambda: np.array([content_digest(array) for array in now], np.int64))
    return made


class Source:
    """What the steps were made of."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, int], Callable[[], Any]] = {}
        self._facts: dict[int, dict[str, Any]] = {}
        self._layouts: dict[int, ObservationLayout] = {}
        self._derived: dict[int, dict[str, Any]] = {}
        self._last: tuple[Any, int] | None = None

    def step_of(self, run: Steps, mode: Any, carried: dict[str, list[list[float]]]) -> ObservedStep:
        """Keep the run's step as it is now."""
        step, names = run.step, {FACTS}
        tensors = {
            kind: Rows(ObservedTensor(name, array.shape, str(array.dtype)) for name, array in arrays.items())
            for kind, arrays in run.kinds.items()
        }
        self._facts[step] = {**copy.deepcopy(run.facts), "layout": self._layout(step, tensors, run.lasting)}
        for kind, arrays in run.kinds.items():
            for name, value in _observed(kind, arrays).items():
                self._arrays[name, step] = value
                names.add(name)
        for name, rows in carried.items():
            self._arrays[f"{SERIES}{name}", step] = partial(np.array, rows, np.float64)
            names.add(f"{SERIES}{name}")
        return ObservedStep(self, step, mode, "worker_0", frozenset(names))

    def _layout(self, step: int, tensors: dict[str, Rows], lasting: dict[str, Any]) -> int:
        now = (tensors, copy.deepcopy(lasting))
        if self._last is None or self._last[0] != now:
            self._layouts[step], self._derived[step] = ObservationLayout(*now), {}
            self._last = (now, step)
        return self._last[1]

    # As `smdebug.trials.observations.one_step.Source`

    def own_facts(self, step: int, worker: str | None = None) -> dict[str, Any]:
        return self._facts[step]

    def layout_at(self, at: Any, worker: str | None = None) -> ObservationLayout:
        return self._layouts[at]

    def value_of(self, name: str, step: int, worker: str | None = None) -> Any:
        return self._arrays[name, step]()

    def derived_from(self, layout: ObservationLayout, worker: str | None = None) -> dict[str, Any]:
        (at,) = (at for at, known in self._layouts.items() if known is layout)
        return self._derived[at]

    def note_damage(self, error: Exception) -> None:
        raise error
