"""The numbers of a run besides its loss: what it logged, its metrics and its learning rate."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from smdebug.exceptions import SMDebugTypeError, TensorUnavailableForStep
from smdebug.files.names import FIRST_LEARNING_RATE, LEARNING_RATES, SERIES, SYSTEM
from smdebug.runs.training_loss import LOSSES, loss_name
from smdebug.trials import Trial
from smdebug.trials.observations.damaged_values import DAMAGED, note_damage

METRICS = "metrics"
LEARNING_RATE = "learning_rate"
_SCALAR = "scalar/"


def last_metrics(trial: Trial) -> dict[str, float]:
    """Return the last value of each metric, and of the learning rate if it was measured."""
    series = trial.observations.series_names()
    names = _metric_names(trial, series)
    found = {name.removeprefix(_SCALAR): value for name, value in _last_values(trial, names, series)}
    for _, rate in _last_values(trial, [FIRST_LEARNING_RATE], series):
        found.setdefault(LEARNING_RATE, rate)
    return found


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
                steps = trial.tensor(f"{SERIES}{name}").steps()
                rows = trial.observations.at(steps[-1]).series(name)
                if len(rows):
                    yield name, float(rows[-1, 3])
            elif trial.has_tensor(name):
                tensor = trial.tensor(name)
                yield name, float(tensor.reduction_value(tensor.steps()[-1], "mean"))
        except DAMAGED as error:
            note_damage(trial, error)
        except (TensorUnavailableForStep, SMDebugTypeError, TypeError, IndexError):  # its shape, or text
            continue
