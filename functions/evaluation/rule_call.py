"""Evaluating a rule at one step, and the outcome if it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from functions.decisions.outcomes import Clear, Found, NothingToCheck, Outcome, Raised
from functions.ports import TooMuch
from smdebug.config.collection_manager import CollectionManager
from smdebug.diagnosis.evidence import evidence_of
from smdebug.exceptions import (
    DamagedFile,
    RuleEvaluationConditionMet,
    SMDebugError,
    StepNotYetAvailable,
    StepUnavailable,
    StorageUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.names import LAST_STEP
from smdebug.rules.rule import Rule
from smdebug.rules.rule_sets import documentation_of
from smdebug.service.records import RuleConfiguration
from smdebug.storage import Storage
from smdebug.trials.as_of import AsOfTrial
from smdebug.trials.damaged_values import note_damage
from smdebug.trials.listed_history import ListedHistory
from smdebug.trials.opening import read_collections

END, SILENCE = "at end", "in silence"


@dataclass(frozen=True)
class Behind:
    """The rule has to wait, as a run that it compares with has not reached the step."""

    problem: str


def as_listed(name: str, storage: Storage) -> AsOfTrial:
    """Return a run that the step index does not know, as a listing shows it."""
    opened = read_collections(storage)
    return AsOfTrial(
        name,
        storage,
        history=ListedHistory(storage, LAST_STEP),
        collections=opened.collections if opened else CollectionManager(),
        num_workers=opened.num_workers if opened else 1,
    )


def collections_of(content: Mapping[str, Any] | None, storage: Storage) -> CollectionManager:
    """Return the collections from the step index, or else from the run's own file."""
    if content is not None:
        return CollectionManager.from_dict(content)
    opened = read_collections(storage)
    return opened.collections if opened else CollectionManager()


def ask(
    rule: Rule,
    trial: AsOfTrial,
    step: int,
    *,
    occasion: str = "",
    silent_for: float | None = None,
) -> Outcome:
    """Evaluate the rule at the step, or on another occasion at the run up to this last step.

    The rule is not to blame for an exception that leaves this function.
    """
    read_before = trial.values_read
    try:
        if occasion == END:
            rule.invoke_end(step)
        elif occasion == SILENCE:
            rule.invoke_in_silence(step, silent_for)  # type: ignore[attr-defined]
        else:
            rule.invoke(step)
    except RuleEvaluationConditionMet as met:
        return Found(tuple(finding.to_dict() for finding in met.findings))
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable):
        return NothingToCheck()
    except DamagedFile as damage:  # the step is left out, and the rule continues
        note_damage(trial, damage)
        return NothingToCheck()
    except (StepNotYetAvailable, StorageUnavailable, TooMuch):
        raise
    except Exception as problem:  # noqa: BLE001 - a rule may raise anything
        return Raised(error_sentence(problem))
    looked = rule.looked if rule.looked is not None else trial.values_read > read_before
    return Clear() if looked else NothingToCheck(rule.not_checked or "")


def with_evidence(found: Found, rule: Rule, configuration: RuleConfiguration, step: int) -> Found:
    """Return the findings with their evidence by cause, and the rule's advice."""
    evidence = evidence_of(
        configuration.name,
        [(step, found.findings)],
        advice=rule.advice,
        docs="" if configuration.source else documentation_of(configuration.rule),
        cause=rule.cause,
    )
    return replace(found, evidence=tuple(evidence))


def error_sentence(problem: BaseException) -> str:
    """Return the exception as a sentence, with its type unless the exception is ours."""
    return (
        str(problem)
        if isinstance(problem, SMDebugError)
        else f"{type(problem).__name__}: {problem}"
    )
