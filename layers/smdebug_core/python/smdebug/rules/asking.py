"""Evaluate a rule at one step. Every evaluation of a rule goes through `ask`, whoever wants it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from smdebug.exceptions import (
    DamagedFile,
    NoMoreData,
    NoMoreProfilerData,
    ObjectMissing,
    RuleEvaluationConditionMet,
    SMDebugError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved, Outcome, Passed
from smdebug.trials.observations.damaged_values import note_damage

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule

AT_STEP, AT_END, IN_SILENCE = "", "at end", "in silence"
"""The occasions to ask a rule: a step, the end of the run, and a run that has saved nothing for a while."""


def ask(
    rule: Rule,
    step: int,
    occasion: str = AT_STEP,
    *,
    silent_for: float | None = None,
    not_its_fault: tuple[type[Exception], ...] = (),
) -> Outcome | Behind:
    """Evaluate the rule at the step, or on another occasion at the run up to this last step.

    Whatever the rule raises becomes an outcome, except `not_its_fault`, which leaves this function.
    A rule passes a step if it says so (`looked`), or if it read a value of it. If the rule forks, the
    copy of this process ends here, so that it does not report the outcome a second time.
    """
    process = os.getpid()
    try:
        return _outcome(rule, step, occasion, silent_for, not_its_fault)
    finally:
        if os.getpid() != process:
            os._exit(0)


def _outcome(
    rule: Rule,
    step: int,
    occasion: str,
    silent_for: float | None,
    not_its_fault: tuple[type[Exception], ...],
) -> Outcome | Behind:
    read_before = _values_read(rule)
    try:
        if occasion == AT_END:
            rule.invoke_end(step)
        elif occasion == IN_SILENCE:
            rule.invoke_in_silence(step, silent_for)  # type: ignore[attr-defined]
        else:
            rule.invoke(step)
    except not_its_fault:
        raise
    except RuleEvaluationConditionMet as met:
        findings = tuple(finding.to_dict() for finding in met.findings)
        return Found(findings, is_last=met.end_of_rule, error=met)
    except StepNotYetAvailable as behind:
        return Behind(str(behind))
    except (NoMoreData, NoMoreProfilerData) as over:
        return NotSaved(str(over), is_over=True, error=over)
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as missing:
        return NotSaved(str(missing), error=missing)
    except (DamagedFile, ObjectMissing) as damage:  # the step is left out, and the rule continues
        note_damage(rule.base_trial, damage)
        return NotSaved(str(damage), is_damaged=True, error=damage)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a rule may raise anything
        return Failed(error_sentence(problem), problem)
    looked = _has_read(rule, read_before) if rule.looked is None else rule.looked
    return Passed() if looked else NothingToCheck(rule.not_checked or "")


def error_sentence(problem: BaseException) -> str:
    """Return the exception as a sentence without secrets, with its type unless the exception is ours."""
    from smdebug.secrets.texts import redacted  # few rules fail

    if isinstance(problem, SMDebugError):
        return redacted(str(problem))
    if isinstance(problem, SystemExit):
        return f"the rule called sys.exit({problem.code!r})"
    return redacted(f"{type(problem).__name__}: {problem}")


def _values_read(rule: Rule) -> list[int | None]:
    """Return how many values of each of its runs were read; None for a run that does not count them."""
    return [getattr(trial, "values_read", None) for trial in rule.trials]


def _has_read(rule: Rule, before: list[int | None]) -> bool:
    return any(now is None or now != then for now, then in zip(_values_read(rule), before, strict=False))
