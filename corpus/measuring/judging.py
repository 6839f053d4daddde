"""The default rules' verdict on a recorded run: its issues, as `smdebug evaluate RUN` shows them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from smdebug.diagnosis.issues import Issue
from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.rules.rule_sets import DEFAULT
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.runs.evaluation.rule_results import RuleResult
from smdebug.runs.opening import open_run
from smdebug.trials import Trial

MOST_PLACES = 3
"""A right alarm has the place among the first ones that it names: to name everything is to name nothing."""


@dataclass(frozen=True)
class Alarm:
    """An issue of a run: the cause that it names, where, and since when."""

    rule: str
    cause: str
    places: tuple[str, ...]
    """The first of the tensors, layers, inputs and workers that are named."""
    step: int
    """The step at which it was found."""
    since: int
    """The step at which it began, as the issue says."""
    message: str
    symptoms: tuple[str, ...] = ()
    """The causes that are shown as its symptoms."""


@dataclass(frozen=True)
class Judged:
    """The verdict on one run, and the steps that it has."""

    alarms: tuple[Alarm, ...]
    steps: tuple[tuple[int, str, int], ...]
    """Of each saved step: its number, its mode, and its number within the mode."""
    errors: tuple[str, ...] = ()
    """Rules that failed."""
    not_checked: tuple[str, ...] = ()
    """Rules that lacked what they need."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


NOTHING_RECORDED = Judged((), (), ("nothing was recorded",))
"""The verdict on a training that the hook did not see: nothing is found in it."""


def judge(place: str, rules: str | None = None) -> Judged:
    """Diagnose the run at that place with the default rules, or with those of another set."""
    begun = time.perf_counter()
    logger, level = get_logger(), get_logger().level
    logger.setLevel(logging.ERROR)
    try:
        trial = open_run(place)
        found = diagnose(trial, [DEFAULT if rules is None else rules], jobs=1)
    except SMDebugError as error:
        return Judged((), (), (f"the run cannot be read: {error}",))
    finally:
        logger.setLevel(level)
    return Judged(
        tuple(as_alarm(issue, found.results) for issue in found.issues),
        tuple(saved_steps(trial)),
        tuple(f"{name}: {error}" for name, error in found.failed.items()),
        tuple(found.not_checked),
        time.perf_counter() - begun,
    )


def as_alarm(issue: Issue, results: Sequence[RuleResult]) -> Alarm:
    """The issue with the first places that its rules name, and the step at which it was found."""
    found = [
        (at.step, finding)
        for result in results
        if result.rule in issue.rules
        for at in result.found
        for finding in at.findings
        if str(finding.get("cause") or "") == issue.cause
    ]
    step = min((step for step, _ in found), default=issue.since)
    named = [
        str(finding[key])
        for key in ("tensor", "worker")
        for at, finding in found
        if at == step and finding.get(key) is not None
    ]
    tensors, layers = list(dict.fromkeys(named)), [*issue.where]
    places = [*tensors[:MOST_PLACES], *layers[:MOST_PLACES], *issue.workers[:MOST_PLACES]]
    return Alarm(
        rule=issue.rules[0],
        cause=issue.cause,
        places=tuple(dict.fromkeys(places)) or (issue.what,),
        step=step,
        since=issue.since,
        message=issue.what,
        symptoms=tuple(symptom.cause for symptom in issue.symptoms),
    )


def saved_steps(trial: Trial) -> Iterable[tuple[int, str, int]]:
    """The steps of a run, with their modes and numbers there."""
    for step in trial.steps():
        mode, number = trial.mode_modestep(step)
        if mode is not None and number is not None:
            yield step, mode.name, number
