"""A run's diagnosis: its rules are evaluated, and their findings folded into issues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from smdebug.amounts import counted
from smdebug.diagnosis import Issue, as_text, fold
from smdebug.diagnosis.html import issue_html
from smdebug.diagnosis.issues import with_checkpoints
from smdebug.diagnosis.wording import sentence, summary
from smdebug.exceptions import SMDebugError
from smdebug.files.notes.checkpoints import Checkpoint
from smdebug.rules.rule_sets import default_rules
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.evaluation.layer_order import computed_layers
from smdebug.runs.evaluation.rule_results import RuleResult
from smdebug.runs.left_out import unread_in_words
from smdebug.runs.opening import open_run
from smdebug.runs.origins import imported_in_words, readable_origin
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial
from smdebug.trials.stored.missing_steps import NOTHING_MISSING, MissingSteps

SEES_MORE = (
    "The tensors of this run were chosen. A hook that gets only a path, as smdebug.start(path) makes it, "
    "lets the default rules check the rest."
)
SCALARS_ALONE = "The other rules check what a hook in the training saves: smdebug.start(path)."
MOST_NAMED = 3  # rules that were not checked for the same reason


@dataclass(frozen=True)
class Diagnosis:
    """The problems of a run, root causes first, and the result of each rule. `print` shows it as text."""

    path: str
    issues: tuple[Issue, ...]
    results: tuple[RuleResult, ...]
    missing_steps: MissingSteps = NOTHING_MISSING
    """The steps that no rule could check, because they are not there."""
    derived: bool = False
    """Whether the default rules saw what follows from chosen tensors, and not what they ask for."""
    unread: str = ""
    """Which steps are missing and which files cannot be read, in words; "" if the rules could see all."""
    imported: str = ""
    """Which log of another tool the run was imported from, and what of it the rules saw."""

    @property
    def sees_more_with(self) -> str:
        """What the rules saw of a run that was imported or chose its tensors, and how they would see more.

        Empty if they saw all that they ask for.
        """
        if self.imported:
            return f"Imported from {self.imported}. {SCALARS_ALONE}"
        return SEES_MORE if self.derived and self.not_checked else ""

    @property
    def passed(self) -> tuple[str, ...]:
        """The rules that checked something and found nothing."""
        return tuple(
            result.name
            for result in self.results
            if result.has_seen and not result.has_found and not result.error
        )

    @property
    def not_checked(self) -> dict[str, str]:
        """The rules that checked nothing, with what the run lacks."""
        return {item.name: item.not_checked for item in self.results if item.not_checked}

    @property
    def failed(self) -> dict[str, str]:
        """The rules that failed, with their errors."""
        return {result.name: result.error for result in self.results if result.error}

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "path": self.path,
            "issues": [issue.to_dict() for issue in self.issues],
            "passed": list(self.passed),
            "not_checked": self.not_checked,
            "failed": self.failed,
            "missing_steps": self.missing_steps.to_dict(),
            "imported": self.imported,
            "rules": [result.to_dict() for result in self.results],
        }

    def __str__(self) -> str:
        lines = []
        for issue in self.issues:
            lines += [f"✗ {line}" if at == 0 else line for at, line in enumerate(as_text(issue))]
        lines += [f"! {name} failed: {error}" for name, error in self.failed.items()]
        if self.unread:
            lines.append(f"! {sentence(self.unread)}")
        if self.passed:
            lines.append(f"✓ {passed_in_words(self.passed, is_partial=bool(self.unread))}")
        lines += [f"– {text}" for text in not_checked_in_words(self.not_checked)]
        lines += [f"– {self.sees_more_with}"] if self.sees_more_with else []
        return "\n".join(lines) or summary(self.issues)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = [f"! {name} failed: {error}" for name, error in self.failed.items()]
        if self.unread:
            lines.append(f"! {sentence(self.unread)}")
        if self.passed:
            lines.append(f"✓ {passed_in_words(self.passed, is_partial=bool(self.unread))}")
        lines += [f"– {text}" for text in not_checked_in_words(self.not_checked)]
        lines += [f"– {self.sees_more_with}"] if self.sees_more_with else []
        others = "<br>".join(map(escape, lines)) or escape(summary(self.issues))
        return "".join(map(issue_html, self.issues)) + f"<p>{others}</p>"


def diagnose(
    run: str | os.PathLike[str] | Trial,
    rules: Sequence[RequestedRule] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    default: bool = True,
    jobs: int | None = None,
    most_steps: int | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
) -> Diagnosis:
    """Evaluate rules on a saved run, and fold their findings into issues: causes with their symptoms.

    Without `rules` they are those of the run's rules.json and of `file`, and, unless `default` is False, the
    default rules that suit the run. A rule is the name of a built-in rule or of a set (`default`, `usual`,
    `all`), an entry as rules.json has it, or a class in `file`.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    results = evaluate(
        trial,
        rules,
        file=file,
        default=default,
        jobs=jobs,
        most_steps=most_steps,
        progress=progress,
    )
    issues = tuple(issues_of(trial, results))
    chosen = {result.rule for result in results} & set(default_rules())
    observations = trial.observations
    derived = bool(chosen) and not (observations.has_facts or observations.series_names())
    return Diagnosis(
        trial.path,
        issues,
        tuple(results),
        trial.missing_steps,
        derived,
        unread=unread_in_words(trial, is_listed=trial.storage.concurrency == 1),  # a request costs
        imported=_imported(trial),
    )


def _imported(trial: Trial) -> str:
    origin = readable_origin(trial)
    return "" if origin is None else imported_in_words(origin)


def issues_of(trial: Trial, results: Iterable[RuleResult]) -> list[Issue]:
    """Return the issues in the results of rules on this run."""
    evidence = [item for result in results for item in result.evidence()]
    issues = fold(evidence, order=layers_in_order(trial) if evidence else ())
    return with_checkpoints(issues, readable_checkpoints(trial)) if issues else []


def readable_checkpoints(trial: Trial) -> list[Checkpoint]:
    """Return the checkpoints that were marked; none if their list cannot be read, which `verify` says."""
    try:
        return trial.checkpoints()
    except SMDebugError:
        return []


def layers_in_order(trial: Trial) -> tuple[str, ...]:
    """Return the layers of the model from input to output, as far as the run shows them."""
    try:
        observations = trial.observations
        if not observations.has_facts:
            return ()
        return computed_layers(observations.layout(observations.steps()[-1]))
    except (SMDebugError, IndexError):
        return ()


def passed_in_words(names: Sequence[str], *, is_partial: bool = False, are_named: bool = True) -> str:
    """Return the rules that passed in a sentence, which says if some steps could not be checked."""
    where = " at the steps that are there" if is_partial else ""
    named = f": {', '.join(names)}" if are_named else ""
    return f"{counted(len(names), 'rule')} passed{where}{named}."


def not_checked_in_words(reasons: dict[str, str]) -> list[str]:
    """Return a sentence for each reason: which rules were not checked, and what is missing."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [
        f"Not checked: {', '.join(rules) if len(rules) <= MOST_NAMED else counted(len(rules), 'rule')}: "
        f"{reason.rstrip('.')}."
        for reason, rules in names.items()
    ]
