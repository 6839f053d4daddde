"""Tensors that differ between two runs at the same step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.exceptions import NoMoreData, SMDebugValueError, StepUnavailable
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import all_close, is_numeric, max_abs_difference
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import (
    WorkerValue,
    read_values,
    reduction_of,
    reductions_of,
    tensor_label,
    value_of,
)
from smdebug.rules.parameters import boolean, number, patterns
from smdebug.rules.selection import TensorSelection


class SimilarAcrossRuns(TensorRule):
    """Fires when a tensor is *different* in the other run at the same global step.

    The tensors that both runs have at the step are compared worker by worker, with `numpy.allclose`; if
    only reductions were saved, those that both have are compared.
    """

    advice: ClassVar = {
        "": (
            "Fix all seeds, and the order of the data, in both runs.",
            "Compare the first step that differs (`smdebug "
            "compare ONE OTHER`): what comes before it is equal.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        other_trial: Any = None,
        include: Any = None,
        collection_names: Any = None,
        rtol: Any = 1e-5,
        atol: Any = 1e-8,
        equal_nan: Any = True,
        strict: Any = False,
        *,
        other_trials: Any = None,
        include_regex: Any = None,
        tensor_regex: Any = None,
        action_str: Any = None,
    ):
        others = [*_as_list(other_trial), *_as_list(other_trials)]
        if not others or any(isinstance(other, str) for other in others):
            raise SMDebugValueError(
                "SimilarAcrossRuns compares with another run: pass its trial as other_trial"
            )
        super().__init__(base_trial, action_str, others)
        given = [(name, patterns(name, value)) for name, value in (
            ("include", include), ("include_regex", include_regex), ("tensor_regex", tensor_regex)
        ) if value is not None]  # fmt: skip
        if any(found != given[0][1] for _, found in given):
            names = " and ".join(name for name, _ in given)
            raise SMDebugValueError(f"{names} are the same parameter, but have different values")
        self.selection = TensorSelection(collection_names, given[0][1] if given else None)
        self.rtol = number("rtol", rtol, minimum=0)
        self.atol = number("atol", atol, minimum=0)
        self.equal_nan = boolean("equal_nan", equal_nan)
        self.strict = boolean("strict", strict)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        names = self.selection.names(trial, step) if self.selection else trial.tensor_names(step=step)
        others = [other for other in self.other_trials or () if self._has_step(other, step)]
        if not others:
            yield from (Judged(name, "", skipped="no other run has this step") for name in names)
            return
        for tensor in read_values(trial, names, step):
            verdicts = [self._judged(tensor, other, step) for other in others]
            # It passes if it is the same in every run that has it.
            yield from (
                [verdict for verdict in verdicts if verdict.finding is not None]
                or [verdict for verdict in verdicts if not verdict.skipped][:1]
                or verdicts[:1]
            )

    def _has_step(self, other: Any, step: int) -> bool:
        try:
            other.wait_for_steps([step])
        except (StepUnavailable, NoMoreData):
            return False
        return True

    def _judged(self, tensor: WorkerValue, other: Any, step: int) -> Judged:
        if not other.has_tensor(tensor.name):
            return self._lacking(tensor, other, step)
        theirs = other.tensor(tensor.name)
        value = None
        if tensor.value is not None:
            value = value_of(theirs, step, ModeKeys.GLOBAL, tensor.worker)
        if tensor.value is not None and value is not None:
            if all_close(tensor.value, value, self.rtol, self.atol, self.equal_nan):
                return Judged(tensor.name, tensor.worker)
            return _difference(self, tensor, other, value, tensor.value)
        compared = 0
        for (name, of_magnitude), _ in self._reductions(tensor, theirs, step):
            at = (step, name, ModeKeys.GLOBAL, tensor.worker)
            mine = reduction_of(tensor.tensor, *at, abs=of_magnitude)
            value = reduction_of(theirs, *at, abs=of_magnitude)
            if mine is None or value is None:
                continue
            compared += 1
            mine, value = np.asarray(mine), np.asarray(value)
            if not all_close(mine, value, self.rtol, self.atol, self.equal_nan):
                statistic = f"saved {'abs_' if of_magnitude else ''}{name}"
                return _difference(self, tensor, other, value, mine, statistic)
        return Judged(tensor.name, tensor.worker) if compared else self._lacking(tensor, other, step)

    def _reductions(self, tensor: WorkerValue, theirs: Any, step: int) -> list[Any]:
        """Return the saved reductions of either run that both have or can compute."""
        mine = tensor.reductions
        saved = reductions_of(theirs, step, ModeKeys.GLOBAL, tensor.worker)
        has_value = value_of(theirs, step, ModeKeys.GLOBAL, tensor.worker) is not None
        if tensor.value is not None:
            return sorted(saved.items())
        return sorted((key, value) for key, value in mine.items() if has_value or key in saved)

    def _lacking(self, tensor: WorkerValue, other: Any, step: int) -> Judged:
        if not self.strict:
            reason = f"run {other.name} lacks it"
            return Judged(tensor.name, tensor.worker, skipped=reason)
        where = tensor_label(tensor.name, tensor.worker, self.base_trial)
        finding = Finding(
            statistic="missing",
            message=f"{where}: run {other.name} lacks it at step {step}",
            details={"other_trial": other.name},
        )
        return Judged(tensor.name, tensor.worker, finding)


def _difference(
    rule: SimilarAcrossRuns,
    tensor: WorkerValue,
    other: Any,
    theirs: Any,
    mine: Any,
    statistic: str = "",
) -> Judged:
    where = tensor_label(tensor.name, tensor.worker, rule.base_trial)
    subject = f"{where}: {statistic}" if statistic else f"{where}:"
    if mine.shape != theirs.shape:
        largest, problem = np.inf, f"shape {mine.shape} is {theirs.shape} in run {other.name}"
    elif not (is_numeric(mine) and is_numeric(theirs)):
        largest, problem = np.inf, f"differs from run {other.name}"
    else:
        largest = max_abs_difference(mine, theirs)
        problem = f"differs from run {other.name} by up to {largest:.4g}"
    finding = Finding(
        statistic=statistic or "largest difference",
        value=float(largest),
        threshold=rule.atol,
        message=f"{subject} {problem}",
        details={"other_trial": other.name, "rtol": rule.rtol, "atol": rule.atol},
    )
    return Judged(tensor.name, tensor.worker, finding, badness=float(largest))


def _as_list(trials: Any) -> list[Any]:
    if trials is None:
        return []
    return list(trials) if isinstance(trials, (list, tuple)) else [trials]
