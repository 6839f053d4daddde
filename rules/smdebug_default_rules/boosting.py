"""The metrics of a boosted model: the data that each is computed on, and its history."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import DefaultRule

TRAINING, VALIDATION = "training", "validation"
LIKELIHOODS = re.compile(r"^(m?logloss|.*nloglik(@.*)?|gamma-deviance)$")
DISTANCES = re.compile(r"^(rmse|rmsle|mae|mphe|quantile)$")
LAST = 16
_TRAINING_NAMES = re.compile(r"train|^(fit|learn|dtrain)$", re.IGNORECASE)
_VALIDATION_NAMES = re.compile(r"val|test|dev|eval|hold", re.IGNORECASE)


def is_boosted(seen: ObservedStep) -> bool:
    """Whether the step is a round of XGBoost with all facts about the booster."""
    return "objective" in (seen.facts.get("arguments") or {})


def parts_of(name: str, evaluated: Mapping[str, str]) -> tuple[str, str] | None:
    """Return which data a series `validation-logloss` is of, and its metric; None if unknown."""
    for data, of in evaluated.items():
        if name.startswith(f"{data}-"):
            return of, name.removeprefix(f"{data}-")
    data, dash, metric = name.partition("-")
    if not dash:
        return None
    if _TRAINING_NAMES.search(data):
        return TRAINING, metric
    return (VALIDATION, metric) if _VALIDATION_NAMES.search(data) else None


def is_loss(metric: str) -> bool:
    """Whether this is a smooth loss, and no error rate, which jumps on small validation data."""
    return bool(LIKELIHOODS.match(metric) or DISTANCES.match(metric))


class Losses:
    """What is kept of the losses of a run, as plain data in a dict that a rule has."""

    def __init__(self, kept: dict[str, Any]):
        self._kept = kept

    def add(self, seen: ObservedStep) -> None:
        """Add what is new at a step."""
        evaluated = self._kept.setdefault("evaluated", {})
        evaluated.update(seen.facts.get("evaluated") or {})
        for name in seen.series_names:
            found = parts_of(name, evaluated)
            if found is not None and is_loss(found[1]):
                known = self._kept.setdefault("series", {}).setdefault(name, _nothing(*found))
                for step, _, _, value in seen.series(name).tolist():
                    _extend(known, int(step), value)

    def of(self, data: str) -> dict[str, dict[str, Any]]:
        """Return what is kept of each loss of training or validation, by the name of its series."""
        series: dict[str, dict[str, Any]] = self._kept.get("series") or {}
        return {name: known for name, known in series.items() if known["of"] == data}


class BoostingRule(DefaultRule):
    """A rule of the losses of a boosted model."""

    needs = "the run is not an XGBoost training saved from its first round"

    def __init__(self, base_trial: Any, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.kept: dict[str, Any] = {}
        self.first: int | None = None
        """The first step of a boosted model that the rule checked."""

    def losses_so_far(self, seen: ObservedStep) -> Losses:
        """Return the losses of the run up to this step."""
        self.first = seen.step if self.first is None else self.first
        losses = Losses(self.kept)
        losses.add(seen)
        return losses


def _nothing(of: str, metric: str) -> dict[str, Any]:
    return {
        "of": of,
        "metric": metric,
        "count": 0,
        "first": math.nan,
        "best": math.inf,
        "best_step": 0,
        "last": [],
    }


def _extend(known: dict[str, Any], step: int, value: float) -> None:
    if not math.isfinite(value):
        return
    if not known["count"]:
        known["first"] = value
    known["count"] += 1
    if value < known["best"]:
        known["best"], known["best_step"] = value, step
    known["last"] = [*known["last"], value][-LAST:]
