"""Where do two runs part? The first step and tensor that differ by more than a tolerance, and how much."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import ObjectMissing, SMDebugValueError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import all_close, is_numeric, max_abs_difference
from smdebug.runs.left_out import refuse_a_missing_file
from smdebug.runs.opening import open_run
from smdebug.runs.overview import collections_of
from smdebug.trials import Trial

NO_COLLECTION = "(none)"
MOST_DIFFERENCES = 1000


@dataclass(frozen=True)
class Difference:
    """A tensor that is not the same in both runs at a step."""

    step: int
    tensor: str
    worker: str
    why: str
    largest: float | None = None  # the largest |a - b|; None where there is none
    mode: str | None = None

    def __str__(self) -> str:
        return f"step {self.step}, {self.tensor} of {self.worker}: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        return {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
        }


@dataclass
class CollectionComparison:
    """How the tensors of one collection compare."""

    compared: int = 0  # values
    different: int = 0
    tensors: set[str] = field(default_factory=set)
    tensors_different: set[str] = field(default_factory=set)
    first_step: int | None = None
    largest: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "different": self.different,
            "tensors": len(self.tensors),
            "tensors_different": len(self.tensors_different),
            "first_step": self.first_step,
            "largest": self.largest if math.isfinite(self.largest) else str(self.largest),
        }


@dataclass(frozen=True)
class Comparison:
    """Two runs, tensor by tensor, at the steps that both have."""

    one: str
    other: str
    steps: int  # that both have
    only_in_one: tuple[int, ...]
    only_in_other: tuple[int, ...]
    tensors_only_in_one: tuple[str, ...]
    tensors_only_in_other: tuple[str, ...]
    compared: int
    number_different: int
    differences: tuple[Difference, ...]  # in order, the first thousand
    collections: Mapping[str, CollectionComparison]

    @property
    def is_same(self) -> bool:
        """Is there no difference in what both have, and does neither have what the other lacks?"""
        return not (
            self.number_different
            or self.only_in_one
            or self.only_in_other
            or self.tensors_only_in_one
            or self.tensors_only_in_other
        )

    @property
    def first(self) -> Difference | None:
        return self.differences[0] if self.differences else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        told: dict[str, Any] = {"is_same": self.is_same}
        for name, value in vars(self).items():
            told[name] = list(value) if isinstance(value, tuple) else value
        told["first"] = self.first.to_dict() if self.first else None
        told["differences"] = [one.to_dict() for one in self.differences]
        told["collections"] = {name: one.to_dict() for name, one in self.collections.items()}
        return told


def compare(
    one: str | os.PathLike[str] | Trial,
    other: str | os.PathLike[str] | Trial,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = True,
    regex: str | list[str] | None = None,
    collection: str | None = None,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison:
    """Compare two runs at the global steps that both have saved, worker by worker.

    Values are the same if `numpy.allclose` says so with these tolerances; where both saved reductions
    alone, those are compared. Text is the same or not.
    """
    if not (rtol >= 0 and atol >= 0):  # nor is either NaN
        raise SMDebugValueError(f"Tolerances are not negative: rtol is {rtol}, atol {atol}")
    one = one if isinstance(one, Trial) else open_run(one)
    other = other if isinstance(other, Trial) else open_run(other)
    close = _Closeness(rtol, atol, equal_nan)
    chosen = {"regex": regex, "collection": collection}
    names_one, names_other = (set(run.tensor_names(**chosen)) for run in (one, other))  # type: ignore[arg-type]
    if (regex or collection) and not names_one | names_other:
        raise SMDebugValueError("Neither run has such a tensor: there is nothing to compare")
    steps_one, steps_other = set(one.steps()), set(other.steps())
    members = collections_of(one)
    told: defaultdict[str, CollectionComparison] = defaultdict(CollectionComparison)
    differences: list[Difference] = []
    compared = number_different = 0
    common = names_one & names_other
    both = sorted(steps_one & steps_other)
    for step in progress(both):
        for name in sorted(_at(one, step, common) & _at(other, step, common)):
            for worker in _workers(one, other, name, step):
                values = [_values(run, name, step, worker) for run in (one, other)]
                if not any(values):
                    continue  # of both the shape alone was saved, or no event file is there
                found = _difference(one, values, name, step, worker, close)
                compared += 1
                number_different += found is not None
                if found is not None and len(differences) < MOST_DIFFERENCES:
                    differences.append(found)
                for collection_name in members.get(name, (NO_COLLECTION,)):
                    _count(told[collection_name], name, step, found)
    return Comparison(
        one=one.path,
        other=other.path,
        steps=len(both),
        only_in_one=tuple(sorted(steps_one - steps_other)),
        only_in_other=tuple(sorted(steps_other - steps_one)),
        tensors_only_in_one=tuple(sorted(names_one - names_other)),
        tensors_only_in_other=tuple(sorted(names_other - names_one)),
        compared=compared,
        number_different=number_different,
        differences=tuple(differences),
        collections=dict(sorted(told.items())),
    )


@dataclass(frozen=True)
class _Closeness:
    rtol: float
    atol: float
    equal_nan: bool

    def why_not(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[str, float | None] | None:
        """Why the two are not the same, and by how much at most; None if they are."""
        if a.shape != b.shape:
            return f"its shape is {list(a.shape)} in one run and {list(b.shape)} in the other", None
        if not (is_numeric(a) and is_numeric(b)):
            same = a.dtype.kind == b.dtype.kind and bool(np.array_equal(a, b))
            return None if same else ("its text differs", None)
        if all_close(a, b, self.rtol, self.atol, self.equal_nan):
            return None
        largest = max_abs_difference(a, b)
        if math.isnan(largest):
            return "one of them holds NaN where the other does not", largest
        return f"the largest |a - b| is {largest:.4g}", largest


def _difference(
    one: Trial,
    values: Sequence[dict[str, NDArray[Any]] | None],
    name: str,
    step: int,
    worker: str,
    close: _Closeness,
) -> Difference | None:
    mode = one.mode(step)
    told = {"mode": None if mode in (None, ModeKeys.GLOBAL) else mode.name}
    ours, others = values
    if ours is None or others is None:
        which = "first" if ours is None else "second"
        why_lost = f"the event file of the {which} run is missing"
        return Difference(step, name, worker, why_lost, None, **told)
    both = sorted(ours.keys() & others.keys())
    if not both:
        why_none = "neither its value nor a reduction of it was saved in both runs"
        return Difference(step, name, worker, why_none, None, **told)
    for key in both:
        why = close.why_not(ours[key], others[key])
        if why is not None:
            of = f"{key}: " if key else ""
            return Difference(step, name, worker, f"{of}{why[0]}", why[1], **told)
    return None


def _values(run: Trial, name: str, step: int, worker: str) -> dict[str, NDArray[Any]] | None:
    """The value, or where there is none the reductions; None if the event file is gone."""
    tensor = run.tensor(name)
    try:
        return {"": tensor.value(step, worker=worker)}
    except TensorUnavailableForStep:  # and nothing else: what is damaged is not the same
        pass
    try:
        refuse_a_missing_file(tensor, step, worker=worker)
    except ObjectMissing:
        return None
    saved = tensor.reduction_values(step, worker=worker)
    return {
        f"{'abs_' if magnitude else ''}{reduction}": np.asarray(value)
        for (reduction, magnitude), value in saved.items()
    }


def _at(run: Trial, step: int, names: set[str]) -> set[str]:
    return names.intersection(run.tensor_names(step=step))


def _workers(one: Trial, other: Trial, name: str, step: int) -> list[str]:
    in_other = set(other.tensor(name).workers(step))
    return [worker for worker in one.tensor(name).workers(step) if worker in in_other]


def _count(told: CollectionComparison, name: str, step: int, found: Difference | None) -> None:
    told.compared += 1
    told.tensors.add(name)
    if found is None:
        return
    told.different += 1
    told.tensors_different.add(name)
    if told.first_step is None:
        told.first_step = step
    if found.largest is not None and not told.largest >= found.largest:
        told.largest = found.largest
