"""How a rule looks at a step: at which tensors, at every worker's values, past what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.config.patterns import matches_any
from smdebug.exceptions import (
    InvalidWorker,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.rules.parameters import patterns, strings

if TYPE_CHECKING:
    import numpy as np

    from smdebug.numbers.statistics import Statistics
    from smdebug.trials.tensor import Tensor
    from smdebug.trials.trial import Trial

MISSING = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable, InvalidWorker)

# A collection that tornasole called otherwise.
_OLDER_NAMES = {"bias": "biases"}


class TensorSelection:
    """The tensors of some collections, and those whose names match some patterns: their union."""

    comes_from_parameters = True

    def __init__(self, collection_names: Any = None, tensor_regex: Any = None):
        self.collection_names = strings("collection_names", collection_names)
        self.tensor_regex = patterns("tensor_regex", tensor_regex)

    def __bool__(self) -> bool:
        return bool(self.collection_names or self.tensor_regex)

    def names(
        self, trial: Trial, step: int | None = None, mode: ModeKeys | None = None
    ) -> list[str]:
        """Names of the selected tensors, sorted; with a step or mode, of those that it has."""
        at: dict[str, Any] = {} if step is None else {"step": step}
        if mode is not None:
            at["mode"] = mode
        selected: set[str] = set()
        if self.collection_names:
            known = trial.collections()
            for name in self.collection_names:
                name = name if name in known else _OLDER_NAMES.get(name, name)
                if name in known:
                    selected.update(trial.tensor_names(collection=name, **at))
        if self.tensor_regex:
            selected.update(trial.tensor_names(regex=self.tensor_regex, **at))
        return sorted(selected)

    def names_itself(self, name: str) -> bool:
        """Does a pattern select this tensor, whatever collections it is in?"""
        return matches_any(name, self.tensor_regex)

    def __str__(self) -> str:
        told = []
        if self.collection_names:
            told.append(f"is in the collections {', '.join(self.collection_names)}")
        if self.tensor_regex:
            told.append(f"matches {', '.join(map(repr, self.tensor_regex))}")
        return " or ".join(told) or "there is"


class Seen(NamedTuple):
    """One worker's part of a tensor at a step: its value, or where only those were saved, its reductions."""

    tensor: Tensor
    worker: str
    value: np.ndarray[Any, Any] | None
    reductions: dict[tuple[str, bool], Any]

    @property
    def name(self) -> str:
        return self.tensor.name


class Measured(NamedTuple):
    """What can be said in numbers of one worker's part of a tensor: of its value, else as it was reduced.

    Where both are None or empty, `skipped` says why nothing can be said.
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
        """The reduction as it was saved; None where it was not, or is no single number."""
        found = single(self.reductions.get((reduction, abs)))
        return None if found is None else float(found)


def step_within(trial: Trial, step: int, mode: ModeKeys) -> int | None:
    """The number that a global step has within `mode`; None if it is a step of another one."""
    if mode is ModeKeys.GLOBAL:
        return step
    its_mode, its_step = trial.mode_modestep(step)
    return its_step if its_mode is mode else None


def step_told(step: int, mode: ModeKeys) -> str:
    """The step as a sentence has it: with its mode, where it is not the global one."""
    return f"step {step}" if mode is ModeKeys.GLOBAL else f"{mode.name} step {step}"


def steps_between(tensor: Tensor, earliest: int, step: int, mode: ModeKeys) -> list[int]:
    """The steps at which it was saved from `earliest` to `step`, without asking for many more."""
    asked = 2
    while True:
        steps = tensor.prev_steps(step, asked, mode)
        if len(steps) < asked or steps[0] < earliest:
            return [one for one in steps if earliest <= one]
        asked *= 2


def each_worker(
    trial: Trial, names: Iterable[str], step: int, mode: ModeKeys = ModeKeys.GLOBAL
) -> Iterator[tuple[Tensor, str]]:
    """Every tensor and worker that wrote it at this step."""
    for name in names:
        try:
            tensor = trial.tensor(name)
            workers = tensor.workers(step, mode)
        except MISSING:
            continue
        for worker in workers:
            yield tensor, worker


def look(
    trial: Trial, names: Iterable[str], step: int, mode: ModeKeys = ModeKeys.GLOBAL
) -> Iterator[Seen]:
    """What every worker saved of these tensors at this step; what is missing is passed over."""
    for tensor, worker in each_worker(trial, names, step, mode):
        value = value_of(tensor, step, mode, worker)
        reductions = {}
        if value is None:
            reductions = reductions_of(tensor, step, mode, worker)
            if not reductions:
                continue
        yield Seen(tensor, worker, value, reductions)


def measure(
    trial: Trial,
    names: Iterable[str],
    step: int,
    mode: ModeKeys = ModeKeys.GLOBAL,
    *,
    saved: tuple[str, bool] | None = None,
) -> Iterator[Measured]:
    """The statistics of every worker's value of these tensors, or where there is none, its reductions.

    With `saved=("mean", True)` a value is not read where that reduction was saved with it.
    """
    for tensor, worker in each_worker(trial, names, step, mode):
        reductions = reductions_of(tensor, step, mode, worker) if saved else {}
        if saved in reductions:
            yield Measured(tensor, worker, None, reductions)
            continue
        found, skipped = None, ""
        try:
            found = tensor.statistics(step, mode, worker)
        except SMDebugTypeError:
            skipped = "its values are no numbers"
        except MISSING:
            reductions = reductions or reductions_of(tensor, step, mode, worker)
            skipped = "" if reductions else "only its shape was saved"
        if found is not None and not found.size:
            found, skipped = None, "it is empty"
        yield Measured(tensor, worker, found, reductions, skipped)


def value_of(tensor: Tensor, step: int, mode: ModeKeys, worker: str) -> Any:
    """The worker's value, or None where it saved none."""
    try:
        return tensor.value(step, mode=mode, worker=worker)
    except MISSING:
        return None


def reductions_of(
    tensor: Tensor, step: int, mode: ModeKeys, worker: str
) -> dict[tuple[str, bool], Any]:
    """The reductions that the worker saved: `{("mean", True): 0.1}`."""
    try:
        return dict(tensor.reduction_values(step, mode=mode, worker=worker))
    except MISSING:
        return {}


def reduction_of(
    tensor: Tensor, step: int, reduction: str, mode: ModeKeys, worker: str, *, abs: bool = False
) -> Any:
    """The worker's reduction, saved or computed, as a number; None where there is neither."""
    try:
        found = tensor.reduction_value(step, reduction, mode=mode, worker=worker, abs=abs)
    except (*MISSING, SMDebugTypeError, SMDebugValueError):  # text, and tensors without values
        return None
    return single(found)


def single(value: Any) -> Any:
    """The one number in an array of one element; None where there are more, or none."""
    if getattr(value, "size", 1) != 1:
        return None
    return value.reshape(-1)[0] if getattr(value, "ndim", 0) else value


def named(name: str, worker: str, trial: Trial) -> str:
    """The tensor as a sentence has it: with its worker where there are several."""
    return f"{name} of {worker}" if trial.num_workers > 1 else name
