"""The values to draw: matching tensors at some of their steps."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import DamagedFile, SMDebugError, SMDebugValueError
from smdebug.numbers.conditions import is_numeric
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.trials import Trial
from smdebug.trials.observations.damaged_values import note_damage

Run = str | os.PathLike[str] | Trial
Runs = Run | Mapping[str, Run]
Values = dict[str, dict[int, NDArray[Any]]]

MOST_STEPS = 100
MOST_TENSORS = 24


def values_of(
    runs: Runs,
    regex: str | list[str],
    *,
    steps: list[int] | None = None,
    most_steps: int = MOST_STEPS,
    most_tensors: int = MOST_TENSORS,
    worker: str | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> Values:
    """Return `{tensor: {step: value}}`; with several runs, names begin with the run's.

    There are at most `most_tensors` tensors with `most_steps` evenly spread steps each; a scalar that was
    kept at every step is returned whole, so that no spike is lost. Raise `SMDebugValueError` if nothing
    matches. `progress` is called with 1 for each value.
    """
    found: Values = {}
    for label, run in named(runs).items():
        trial = run if isinstance(run, Trial) else open_run(run)
        every_step = _series_matching(trial, regex)
        names = sorted({*every_step, *trial.tensor_names(regex=regex)})
        for name in names[:most_tensors]:
            if name in every_step:
                over_steps = _over_every_step(trial, name, steps, worker)
            else:
                over_steps = _over_steps(trial, name, steps, most_steps, worker, progress)
            if over_steps:
                found[f"{label}: {name}" if label else name] = over_steps
    if not found:
        patterns = " or ".join(map(repr, [regex] if isinstance(regex, str) else regex))
        raise SMDebugValueError(
            f"No tensor with values matches {patterns}; `smdebug inspect RUN --tensors` lists them"
        )
    if len(named(runs)) > 1:  # tensors of the same name side by side
        found = dict(sorted(found.items(), key=lambda item: item[0].split(": ", 1)[1]))
    return found


def are_scalars(runs: Runs, regex: str | list[str], worker: str | None = None) -> bool:
    """Whether each tensor that matches has a single value wherever it was saved."""
    values = values_of(runs, regex, most_steps=2, worker=worker)
    return all(value.size == 1 for over_steps in values.values() for value in over_steps.values())


def named(runs: Runs) -> dict[str, Run]:
    """The runs by name; the name of a single run is empty."""
    return dict(runs) if isinstance(runs, Mapping) else {"": runs}


def flat(value: Any) -> NDArray[np.float64]:
    """The finite numbers in a value as a vector; magnitudes if they are complex."""
    numbers = magnitudes(value).reshape(-1)
    return numbers[np.isfinite(numbers)]


def magnitudes(value: Any) -> NDArray[np.float64]:
    """The numbers in a value; magnitudes if they are complex."""
    array = np.asarray(value)
    return (np.abs(array) if array.dtype.kind == "c" else array).astype(np.float64)


def edges_of(numbers: Iterable[NDArray[Any]], bins: int) -> NDArray[np.float64]:
    """The edges of bins for all these numbers, even if they are too close together for numpy."""
    filled = [array for array in numbers if array.size]
    low = min((float(array.min()) for array in filled), default=0.0)
    high = max((float(array.max()) for array in filled), default=1.0)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        reach = 0.5 * abs(high) or 0.5
        low, high = low - reach, high + reach
    return np.linspace(low, high, bins + 1)


def _series_matching(trial: Trial, regex: str | list[str]) -> list[str]:
    patterns = [regex] if isinstance(regex, str) else regex
    return [
        name
        for name in trial.observations.series_names()
        if any(re.search(pattern, name) for pattern in patterns)
    ]


def _over_every_step(
    trial: Trial, name: str, steps: list[int] | None, worker: str | None
) -> dict[int, NDArray[Any]]:
    series = trial.series(name, worker)
    wanted = None if steps is None else set(steps)
    return {
        step: np.asarray(value)
        for step, value in zip(series.steps.tolist(), series.values, strict=True)
        if wanted is None or step in wanted
    }


def _over_steps(
    trial: Trial,
    name: str,
    steps: list[int] | None,
    most: int,
    worker: str | None,
    progress: Callable[[int], Any],
) -> dict[int, NDArray[Any]]:
    tensor = trial.tensor(name)
    known = tensor.steps()
    if steps is not None:
        known = [step for step in known if step in set(steps)]
    values: dict[int, NDArray[Any]] = {}
    for step in thinned(known, most):
        progress(1)
        try:
            value = tensor.value(step, worker=worker)
        except SMDebugError as error:
            if isinstance(error, DamagedFile):
                note_damage(trial, error)
            continue
        if is_numeric(value) and value.size:
            values[step] = value
    return values
