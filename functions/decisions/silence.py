"""Whether a run is silent, since when, and when to check again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.parameters import integer
from smdebug.service.records import RuleConfiguration, RunRecord, RunState, StepRecord
from smdebug_rules.catalog import CATALOG

_STALLED = CATALOG["StalledTrainingRule"]
_TIMED = frozenset(name.lower() for name in (_STALLED.name, *_STALLED.aliases))
_NAMES = _TIMED | {"missingrank"}  # which reads where each rank stands
(_THRESHOLD,) = (entry for entry in _STALLED.parameters if entry.name == "threshold")


class Stage(Enum):
    """The stages of a run's silence."""

    ACTIVE = "nothing to report"
    SILENT = "to be reported as silent"
    ENDED = "silent for so long that the run counts as ended"


@dataclass(frozen=True)
class SilenceLimits:
    """The silences that matter for a run, in seconds: those of its rules and of the deployment."""

    rules: tuple[RuleConfiguration, ...]
    stall_timeout: float  # then the run is reported as silent
    silence_timeout: float  # and then it counts as ended


@dataclass(frozen=True)
class Silence:
    """A run's silence at one moment."""

    stage: Stage
    since: float  # when something last arrived
    seconds: float
    reached: float | None  # the longest checkpoint it has passed: the rules are evaluated
    check_at: float  # when to check again; 0 if the run has ended


def watches_silence(rule: RuleConfiguration) -> bool:
    """Whether the rule is evaluated while nothing arrives."""
    return _is_one_of(_NAMES, rule)


def _is_one_of(names: frozenset[str], rule: RuleConfiguration) -> bool:
    return rule.rule.lower() in names and rule.source is None


def last_activity(record: RunRecord, steps: Iterable[StepRecord]) -> float:
    """Return when the run was first seen or the last file of these steps was recorded."""
    return max([record.first_seen, *(step.indexed for step in steps)])


def checkpoints(limits: SilenceLimits) -> list[float]:
    """Return after how many seconds of silence to check the run, in order."""
    wanted = {
        limits.stall_timeout,
        limits.silence_timeout,
        *(_threshold(rule) for rule in limits.rules),
    }
    return sorted(seconds for seconds in wanted if 0 < seconds <= limits.silence_timeout)


def assess(record: RunRecord, newest: Iterable[StepRecord], limits: SilenceLimits, *, now: float) -> Silence:
    """Return the run's silence at `now`, given its newest step."""
    since = last_activity(record, newest)
    seconds = now - since
    if seconds >= limits.silence_timeout:
        return Silence(Stage.ENDED, since, seconds, None, 0.0)
    marks = checkpoints(limits)
    check_at = since + min(mark for mark in marks if mark > seconds)
    if marks[0] < limits.stall_timeout:  # the run may resume and fall silent again before then
        check_at = min(check_at, now + marks[0])
    is_news = record.state is RunState.RUNNING and seconds >= limits.stall_timeout
    passed = [mark for mark in marks if mark <= seconds]
    return Silence(
        Stage.SILENT if is_news else Stage.ACTIVE,
        since,
        seconds,
        max(passed, default=None),
        check_at,
    )


def _threshold(rule: RuleConfiguration) -> float:
    if not _is_one_of(_TIMED, rule):
        return 0.0
    try:
        return float(integer("threshold", rule.parameters.get("threshold", _THRESHOLD.default)))
    except SMDebugValueError:  # reported when the rule is made
        return 0.0
