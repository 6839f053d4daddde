"""Read tensors for a rule: every worker's value, statistics or reductions; missing data is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import (
    InvalidWorker,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.damaged_values import DAMAGED, note_damage

if TYPE_CHECKING:
    import numpy as np

    from smdebug.numbers.statistics import Statistics
    from smdebug.trials.tensor import Tensor
    from smdebug.trials.trial import Trial

MISSING = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable, InvalidWorker)


class WorkerValue(NamedTuple):
    """What one worker saved of a tensor at a step: its value, or else its reductions."""

    tensor: Tensor
    worker: str
    value: np.ndarray[Any, Any] | None
    reductions: dict[tuple[str, bool], Any]

    @property
    def name(self) -> str:
        return self.tensor.name


class WorkerStatistics(NamedTuple):
    """The statistics of one worker's value of a tensor at a step, or else its saved reductions.

    If there are neither, `skipped` is the reason.
    """

    tensor: Tensor
    worker: str
    statistics: Statistics | None
    reductions: dict[tuple[str, bool], Any]
    skipped: str = ""

    @property
    def name(self) -> str:
        return self.tensor.name

    def saved(self, reduction: str, *, abs: bool = False) -> float | None:
        """Return the saved reduction; None if it was not saved, or is not a single number."""
        value = single(self.reductions.get((reduction, abs)))
        return None if value is None else float(value)


def step_in_mode(trial: Trial, step: int, mode: ModeKeys) -> int | None:
    """Return the number of a global step within `mode`; None if the step belongs to another mode."""
    if mode is ModeKeys.GLOBAL:
        return step
    step_mode, mode_step = trial.mode_modestep(step)
    return mode_step if step_mode is mode else None


def step_label(step: int, mode: ModeKeys) -> str:
    """Return the step as text, with its mode if that is not GLOBAL."""
    return f"step {step}" if mode is ModeKeys.GLOBAL else f"{mode.name} step {step}"


def steps_between(tensor: Tensor, earliest: int, step: int, mode: ModeKeys) -> list[int]:
    """Return the steps from `earliest` to `step` at which the tensor was saved.

    Asks for twice as many until they suffice: a long run has many more before `earliest`.
    """
    count = 2
    while True:
        steps = tensor.prev_steps(step, count, mode)
        if len(steps) < count or steps[0] < earliest:
            return [saved for saved in steps if earliest <= saved]
        count *= 2


def each_worker(
    trial: Trial, names: Iterable[str], step: int, mode: ModeKeys = ModeKeys.GLOBAL
) -> Iterator[tuple[Tensor, str]]:
    """Yield each tensor with every worker that saved it at this step."""
    for name in names:
        try:
            tensor = trial.tensor(name)
            workers = tensor.workers(step, mode)
        except MISSING:
            continue
        for worker in workers:
            yield tensor, worker


def read_values(
    trial: Trial, names: Iterable[str], step: int, mode: ModeKeys = ModeKeys.GLOBAL
) -> Iterator[WorkerValue]:
    """Yield what every worker saved of these tensors at this step; missing data is skipped."""
    for tensor, worker in each_worker(trial, names, step, mode):
        value = value_of(tensor, step, mode, worker)
        reductions = {}
        if value is None:
            reductions = reductions_of(tensor, step, mode, worker)
            if not reductions:
                continue
        yield WorkerValue(tensor, worker, value, reductions)


def measure(
    trial: Trial,
    names: Iterable[str],
    step: int,
    mode: ModeKeys = ModeKeys.GLOBAL,
    *,
    saved: tuple[str, bool] | None = None,
) -> Iterator[WorkerStatistics]:
    """Yield the statistics of every worker's value of these tensors, or else its reductions.

    With `saved=("mean", True)`, a value is not read if that reduction was saved.
    """
    for tensor, worker in each_worker(trial, names, step, mode):
        reductions = reductions_of(tensor, step, mode, worker) if saved else {}
        if saved in reductions:
            yield WorkerStatistics(tensor, worker, None, reductions)
            continue
        statistics, skipped = None, ""
        try:
            statistics = tensor.statistics(step, mode, worker)
        except SMDebugTypeError:
            skipped = "its values are not numbers"
        except DAMAGED as error:
            note_damage(trial, error)
            skipped = str(error)
        except MISSING:
            reductions = reductions or reductions_of(tensor, step, mode, worker)
            skipped = "" if reductions else "only its shape was saved"
        if statistics is not None and not statistics.size:
            statistics, skipped = None, "it is empty"
        yield WorkerStatistics(tensor, worker, statistics, reductions, skipped)


def value_of(tensor: Tensor, step: int, mode: ModeKeys, worker: str) -> Any:
    """Return the worker's value, or None if it saved none."""
    try:
        return tensor.value(step, mode=mode, worker=worker)
    except MISSING:
        return None
    except DAMAGED as error:
        note_damage(tensor.trial, error)
        return None


def reductions_of(tensor: Tensor, step: int, mode: ModeKeys, worker: str) -> dict[tuple[str, bool], Any]:
    """Return the reductions that the worker saved: `{("mean", True): 0.1}`."""
    try:
        return dict(tensor.reduction_values(step, mode=mode, worker=worker))
    except MISSING:
        return {}
    except DAMAGED as error:
        note_damage(tensor.trial, error)
        return {}


def reduction_of(
    tensor: Tensor, step: int, reduction: str, mode: ModeKeys, worker: str, *, abs: bool = False
) -> Any:
    """Return the worker's reduction, saved or computed, as a number; None if there is neither."""
    try:
        value = tensor.reduction_value(step, reduction, mode=mode, worker=worker, abs=abs)
    except (*MISSING, SMDebugTypeError, SMDebugValueError):  # text, and tensors without values
        return None
    except DAMAGED as error:
        note_damage(tensor.trial, error)
        return None
    return single(value)


def single(value: Any) -> Any:
    """Return the number in an array of one element; None if there are more, or none."""
    if getattr(value, "size", 1) != 1:
        return None
    return value.reshape(-1)[0] if getattr(value, "ndim", 0) else value


def tensor_label(name: str, worker: str, trial: Trial) -> str:
    """Return the tensor's name, with its worker if the run has several."""
    return f"{name} of {worker}" if trial.num_workers > 1 else name
