"""Tensors that differ between two runs at the same step."""

from __future__ import annotations

from typing import Any

import numpy as np

from smdebug.exceptions import NoMoreData, SMDebugValueError, StepUnavailable
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import all_close, is_numeric, max_abs_difference
from smdebug.rules import Finding, Rule
from smdebug.rules.looking import Seen, TensorSelection, look, named, reductions_of, value_of
from smdebug.rules.parameters import boolean, number, patterns


class SimilarAcrossRuns(Rule):
    """Fires when a tensor is *different* in the other run at the same global step.

    Compared are the tensors that both runs have at the step, worker by worker, with `numpy.allclose`;
    where only reductions were saved, those that both have.
    """

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
        if not others or any(isinstance(one, str) for one in others):
            raise SMDebugValueError(
                "SimilarAcrossRuns compares with another run: give it as other_trial (a trial)"
            )
        super().__init__(base_trial, action_str, others)
        given = [(name, patterns(name, value)) for name, value in (
            ("include", include), ("include_regex", include_regex), ("tensor_regex", tensor_regex)
        ) if value is not None]  # fmt: skip
        if any(found != given[0][1] for _, found in given):
            names = " and ".join(name for name, _ in given)
            raise SMDebugValueError(f"{names} are the same parameter, and differ")
        self.selection = TensorSelection(collection_names, given[0][1] if given else None)
        self.rtol = number("rtol", rtol, minimum=0)
        self.atol = number("atol", atol, minimum=0)
        self.equal_nan = boolean("equal_nan", equal_nan)
        self.strict = boolean("strict", strict)

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        self.looked = False
        names = (
            self.selection.names(trial, step) if self.selection else trial.tensor_names(step=step)
        )
        others = [other for other in self.other_trials or () if self._has_step(other, step)]
        found = []
        if others:
            for seen in look(trial, names, step):
                for other in others:
                    judged = self._judged(seen, other, step)
                    if judged is not None:
                        found.append(judged)
        found.sort(key=lambda one: (-one[0], one[1].tensor or "", one[1].worker or ""))
        self.findings = [finding for _, finding in found]
        return bool(found)

    def _has_step(self, other: Any, step: int) -> bool:
        try:
            other.wait_for_steps([step])
        except (StepUnavailable, NoMoreData):
            return False
        return True

    def _judged(self, seen: Seen, other: Any, step: int) -> tuple[float, Finding] | None:
        if not other.has_tensor(seen.name):
            return self._lacking(seen, other, step)
        theirs = other.tensor(seen.name)
        if seen.value is not None:
            value = value_of(theirs, step, ModeKeys.GLOBAL, seen.worker)
            if value is None:
                return self._lacking(seen, other, step)
            self.looked = True
            if all_close(seen.value, value, self.rtol, self.atol, self.equal_nan):
                return None
            return _difference(self, seen, other, step, value)
        saved = reductions_of(theirs, step, ModeKeys.GLOBAL, seen.worker)
        common = sorted(saved.keys() & seen.reductions.keys())
        if not common:
            return self._lacking(seen, other, step)
        self.looked = True
        for key in common:
            mine, value = np.asarray(seen.reductions[key]), np.asarray(saved[key])
            if not all_close(mine, value, self.rtol, self.atol, self.equal_nan):
                statistic = f"{'abs_' if key[1] else ''}{key[0]}"
                return _difference(self, seen, other, step, value, mine, f"saved {statistic}")
        return None

    def _lacking(self, seen: Seen, other: Any, step: int) -> tuple[float, Finding] | None:
        if not self.strict:
            return None
        self.looked = True
        where = named(seen.name, seen.worker, self.base_trial)
        return 0.0, Finding(
            tensor=seen.name,
            statistic="missing",
            worker=seen.worker,
            step=step,
            message=f"{where}: run {other.name} does not have it at step {step}",
            details={"other_trial": other.name},
        )


def _difference(
    rule: SimilarAcrossRuns,
    seen: Seen,
    other: Any,
    step: int,
    theirs: Any,
    mine: Any = None,
    statistic: str = "",
) -> tuple[float, Finding]:
    mine = seen.value if mine is None else mine
    where = named(seen.name, seen.worker, rule.base_trial)
    subject = f"{where}: its {statistic}" if statistic else f"{where}:"
    if mine.shape != theirs.shape:
        largest, told = np.inf, f"shape {mine.shape} is {theirs.shape} in run {other.name}"
    elif not (is_numeric(mine) and is_numeric(theirs)):
        largest, told = np.inf, f"differs from run {other.name}"
    else:
        largest = max_abs_difference(mine, theirs)
        told = f"differs from run {other.name} by up to {largest:.4g}"
    return float(largest), Finding(
        tensor=seen.name,
        statistic=statistic or "largest difference",
        value=float(largest),
        threshold=rule.atol,
        worker=seen.worker,
        step=step,
        message=f"{subject} {told}",
        details={"other_trial": other.name},
    )


def _as_list(trials: Any) -> list[Any]:
    if trials is None:
        return []
    return list(trials) if isinstance(trials, (list, tuple)) else [trials]
