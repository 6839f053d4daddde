"""The numbers of a run besides its loss: what it logged, its metrics and its learning rate."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import number
from smdebug.exceptions import SMDebugError, SMDebugTypeError, TensorUnavailableForStep
from smdebug.files.names import FIRST_LEARNING_RATE, LEARNING_RATES, SERIES, SYSTEM
from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.runs.training_loss import LOSSES, loss_name
from smdebug.trials import Trial
from smdebug.trials.observations.damaged_values import DAMAGED, note_damage

METRICS = "metrics"
LEARNING_RATE = "learning_rate"
_SCALAR = "scalar/"
_RATE_NAMES = ("lr", LEARNING_RATE)
SIZES = ("parameters", "batch_size", "samples_per_second", "tokens_per_second")
_STEPS_TRIED = 3
_ALIKE = 1e-3
_KNOWN: WeakKeyDictionary[Trial, tuple[int, str]] = WeakKeyDictionary()


def last_metrics(trial: Trial) -> dict[str, float]:
    """Return the last value of each metric, and of the learning rate if it was measured."""
    series = trial.observations.series_names()
    names = _metric_names(trial, series)
    found = {name.removeprefix(_SCALAR): value for name, value in _last_values(trial, names, series)}
    for _, rate in _last_values(trial, [FIRST_LEARNING_RATE], series):
        found.setdefault(LEARNING_RATE, rate)
    return found


def unlike_configured(trial: Trial) -> str:
    """Return a sentence that says so if the measured rate is another one than the configured; else "".

    Only a rate that stays the same is compared: a schedule may well begin and end elsewhere.
    """
    count = len(trial.steps())
    known = _KNOWN.get(trial, (-1, ""))
    if known[0] != count:
        try:
            known = count, _compared(trial)
        except SMDebugError:  # the rest of the run can be shown
            known = count, ""
        _KNOWN[trial] = known
    return known[1]


def measured_sizes(trial: Trial) -> dict[str, float]:
    """Return what a training has by itself: `SIZES`, where known.

    They are those of the last training step that says so. Of a step with several backward passes no pace is
    given, unless a Trainer has said how many batches it accumulates: each may have a batch of its own or not.
    Tokens are those of the model's inputs, with padding.
    """
    steps = trial.steps(ModeKeys.TRAIN)
    found: dict[str, float] = {}
    for step in reversed(steps[-_STEPS_TRIED:]):
        try:
            facts = trial.facts(step, ModeKeys.TRAIN)
            whole = trial.global_step(ModeKeys.TRAIN, step)
            matrix = None if whole is None else trial.observations.at(whole).statistics("parameters")
        except SMDebugError:  # a run of chosen tensors, or a damaged step: the rest of the run can be shown
            continue
        if matrix is not None:
            count = sum(math.prod(tensor.shape) for tensor in matrix.tensors if tensor.shape is not None)
            found.setdefault("parameters", count)
        found = {**_pace(facts), **found}
        if "samples_per_second" in found and "parameters" in found:
            break
    return {name: found[name] for name in SIZES if name in found}


def _pace(facts: Mapping[str, Any]) -> dict[str, float]:
    shapes, system = facts.get("shapes"), facts.get("system")
    seconds = system.get("step_seconds") if isinstance(system, Mapping) else None
    if not isinstance(seconds, float) or not seconds > 0:
        seconds = None
    first = next(iter(shapes), None) if isinstance(shapes, list) else None
    if not isinstance(first, list) or not all(isinstance(size, int) for size in first):
        first = []
    said = facts.get("batches")
    if isinstance(said, Mapping):
        return _pace_of_trainer(said, first, seconds)
    if not facts.get("backward_passes") or len(first) < 2:
        return {}  # no step of a training, or one sample alone
    if facts.get("backward_passes") != 1 or seconds is None:
        return {"batch_size": first[0]}
    return {"batch_size": first[0], "samples_per_second": first[0] / seconds}


def _pace_of_trainer(said: Mapping[str, Any], first: list[int], seconds: float | None) -> dict[str, float]:
    sizes = [said.get(name) for name in ("per_device", "accumulated", "workers")]
    counts = [size for size in sizes if isinstance(size, int)]
    if len(counts) != len(sizes):
        return {}
    batch, per_step = math.prod(counts), math.prod(counts[1:])
    if seconds is None:
        return {"batch_size": batch}
    pace = {"batch_size": batch, "samples_per_second": batch / seconds}
    if said.get("of_tokens") and len(first) == 2:
        pace["tokens_per_second"] = math.prod(first) * per_step / seconds
    return pace


def _metric_names(trial: Trial, series: Iterable[str]) -> list[str]:
    """Return the names of the scalars that were logged; a tensor of one value is no metric, nor is a loss."""
    tensors = {*trial.measured_tensors(), *trial.tensor_names(collection=LOSSES), loss_name(trial)}
    logged = (
        name for name in series if name not in tensors and not name.startswith((LEARNING_RATES, f"{SYSTEM}/"))
    )
    saved = [*trial.tensor_names(collection=METRICS), *trial.tensor_names(regex=f"^{_SCALAR}")]
    return list(dict.fromkeys([*logged, *saved]))


def _last_values(trial: Trial, names: Iterable[str], series: Container[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        try:
            if name in series:
                rows = _last_rows(trial, name, of_training=f"val_{name}" in series)
                if len(rows):
                    yield name, float(rows[-1, 3])
            elif trial.has_tensor(name):
                tensor = trial.tensor(name)
                yield name, float(tensor.reduction_value(tensor.steps()[-1], "mean"))
        except DAMAGED as error:
            note_damage(trial, error)
        except (TensorUnavailableForStep, SMDebugTypeError, TypeError, IndexError):  # its shape, or text
            continue


def _last_rows(trial: Trial, name: str, *, of_training: bool) -> NDArray[np.float64]:
    """Return the last values that were saved of a series, or `of_training` those without evaluations."""
    steps = trial.tensor(f"{SERIES}{name}").steps()
    rows = trial.observations.at(steps[-1]).series(name)
    if of_training:
        for step in reversed(steps[-_STEPS_TRIED:]):
            own = trial.observations.at(step).series(name)
            own = own[np.isin(own[:, 1], [mode.value for mode in TRAINING])]
            if len(own):
                return own
    return rows


def _compared(trial: Trial) -> str:
    configured = {} if trial.origin is None else dict(_rates_in(trial.origin.config))
    if not configured:
        return ""
    measured: list[float] = []
    for name in trial.observations.series_names():
        if name.startswith(LEARNING_RATES):
            measured += _first_and_last(trial, name)
    is_constant = measured and all(_is_alike(rate, measured[0]) for rate in measured)
    if not is_constant or any(_is_alike(rate, measured[0]) for rate in configured.values()):
        return ""
    named = ", ".join(f"{name} {number(rate)}" for name, rate in configured.items())
    return f"The configuration says {named}, but the optimizer uses {number(measured[0])}"


def _rates_in(config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in config.items():
        if name.rpartition(".")[2].lower().replace("-", "_") not in _RATE_NAMES or isinstance(value, bool):
            continue
        try:
            rate = float(value)  # YAML reads 1e-3 as a text
        except (TypeError, ValueError):
            continue
        if math.isfinite(rate):
            yield name, rate


def _first_and_last(trial: Trial, name: str) -> list[float]:
    steps = trial.tensor(f"{SERIES}{name}").steps()
    found = []
    for step in {steps[0], steps[-1]} if steps else ():
        rows = trial.observations.at(step).series(name)
        found += [float(rows[place, 3]) for place in (0, -1) if len(rows)]
    return found


def _is_alike(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=_ALIKE)
