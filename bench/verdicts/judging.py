"""The default rules' verdict on a recorded run, as `smdebug evaluate RUN` gives it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.runs.evaluating import evaluate
from smdebug.runs.opening import open_run
from smdebug.runs.rule_results import RuleResult
from smdebug.trials import Trial


@dataclass(frozen=True)
class Alarm:
    """What a rule reports of a run: the cause that it names, where, and since when."""

    rule: str
    cause: str
    places: tuple[str, ...]
    """The tensors, layers, inputs and workers that are named."""
    step: int
    """The step at which it was found."""
    since: int
    """The step at which it began, as the finding says."""
    message: str

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Alarm:
        return cls(**{**payload, "places": tuple(payload["places"])})


@dataclass(frozen=True)
class Judged:
    """The verdict on one run, and the steps that it has."""

    alarms: tuple[Alarm, ...]
    steps: tuple[tuple[int, str, int], ...]
    """Of each saved step: its number, its mode, and its number within the mode."""
    errors: tuple[str, ...] = ()
    """Rules that failed."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(place: str) -> Judged:
    """Evaluate the default rules on the run at that place."""
    get_logger().setLevel(logging.ERROR)
    try:
        trial = open_run(place)
        results = evaluate(trial, default_rules(trial), jobs=1)
    except SMDebugError as error:
        return Judged((), (), (f"the run cannot be read: {error}",))
    return Judged(
        tuple(alarm for result in results for alarm in alarms_of(result)),
        tuple(saved_steps(trial)),
        tuple(f"{result.name}: {result.error}" for result in results if result.error),
        sum(result.seconds for result in results),
    )


def default_rules(trial: Trial) -> list[Any]:
    """The names of the rules that look when nobody says which."""
    try:
        from smdebug_default_rules.catalog import CATALOG  # type: ignore[import-not-found]
    except ImportError:
        from smdebug.cli.evaluate_command import _without_required_parameters

        return list(_without_required_parameters(trial))
    return list(CATALOG)


def alarms_of(result: RuleResult) -> Iterable[Alarm]:
    """One alarm for each cause that a rule names, as it was first found."""
    first: dict[str, list[Mapping[str, Any]]] = {}
    steps: dict[str, int] = {}
    for found in result.found:
        for finding in found.findings or ({"message": "the condition is met"},):
            cause = str(finding.get("cause") or "")
            if steps.setdefault(cause, found.step) == found.step:
                first.setdefault(cause, []).append(finding)
    for cause, findings in first.items():
        since = [finding["since"] for finding in findings if finding.get("since") is not None]
        yield Alarm(
            result.rule,
            cause,
            tuple(place for finding in findings for place in places_of(finding)),
            steps[cause],
            min(since, default=steps[cause]),
            str(findings[0]["message"]),
        )


def places_of(finding: Mapping[str, Any]) -> list[str]:
    """What a finding names: its tensor, its worker, or else its message."""
    named = [str(finding[key]) for key in ("tensor", "worker") if finding.get(key) is not None]
    return named or [str(finding["message"])]


def saved_steps(trial: Trial) -> Iterable[tuple[int, str, int]]:
    """The steps of a run, with their modes and numbers there."""
    for step in trial.steps():
        mode, number = trial.mode_modestep(step)
        if mode is not None and number is not None:
            yield step, mode.name, number
