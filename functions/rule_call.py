"""A rule is asked about one step: what it says, or what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from functions.decisions.verdicts import Clear, DidNotLook, Found, Outcome, Raised
from smdebug.exceptions import (
    RuleEvaluationConditionMet,
    SMDebugError,
    StepNotYetAvailable,
    StepUnavailable,
    StorageUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.rule import Rule
from smdebug.trials.as_of import AsOfTrial
from smdebug.trials.run_index import WorkerStep


@dataclass(frozen=True)
class Behind:
    """Another run that the rule compares with has not come as far: the rule has to wait."""

    problem: str


class ViewOfRun(AsOfTrial):
    """The run as of a step, that knows whether anything was read of it."""

    values_read = 0

    def read(self, written: WorkerStep, position: int) -> Any:
        self.values_read += 1
        return super().read(written, position)


def ask(rule: Rule, trial: ViewOfRun, step: int) -> Outcome:
    """Have the rule look at the step. `StepNotYetAvailable` and `StorageUnavailable` are not its fault."""
    read_before = trial.values_read
    try:
        rule.invoke(step)
    except RuleEvaluationConditionMet as met:
        return Found(tuple(finding.to_dict() for finding in met.findings))
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable):
        return DidNotLook()
    except (StepNotYetAvailable, StorageUnavailable):
        raise
    except Exception as problem:  # noqa: BLE001 - a rule may raise anything
        return Raised(told_of(problem))
    looked = rule.looked if rule.looked is not None else trial.values_read > read_before
    return Clear() if looked else DidNotLook()


def told_of(problem: BaseException) -> str:
    """What was raised, in a sentence; the type is named where it says more than the text."""
    return (
        str(problem)
        if isinstance(problem, SMDebugError)
        else f"{type(problem).__name__}: {problem}"
    )
