"""From the path of a run to the file of its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from smdebug.reports.gathering import gather
from smdebug.rules.rule_sets import default_rules
from smdebug.runs.comparing import compare
from smdebug.runs.evaluation.choosing import rules_for
from smdebug.runs.evaluation.evaluating import default_steps, evaluate
from smdebug.runs.evaluation.rule_results import RuleResult
from smdebug.runs.opening import open_run
from smdebug.runs.verdicts import Verdict, of_results
from smdebug.service.records import RequestedRule
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial
from smdebug.ui.embedding import page_of

MOST_LOOKS = 30_000  # steps times tensors that a rule evaluates for a report


def write_report(
    run: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    rules: Sequence[RequestedRule] | None = None,
    other: str | os.PathLike[str] | None = None,
    every_step: bool = False,
    jobs: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """Evaluate rules on a saved run and write its report, one file of HTML; return the verdicts.

    Without `rules` they are those that judge the run. Rules that read tensors evaluate evenly spread steps of
    a long run, or `every_step`. With `other` the page shows where the two
    runs diverge.
    """
    trial = open_run(run)
    most = None if every_step else steps_worth(trial)
    verdicts = evaluated(trial, rules, jobs=jobs, most_steps=most, progress=progress)
    against = None if other is None else open_run(other)
    comparison = None if against is None else compare(trial, against)
    notes = notes_on(trial, verdicts, most)
    found = gather(trial, verdicts, other=against, comparison=comparison, notes=notes, progress=progress)
    write_page(to, page_of(found))
    return verdicts


def page_of_results(trial: Trial, results: Sequence[RuleResult]) -> str:
    """Return the report of a run whose rules were evaluated already, as HTML."""
    return page_of(gather(trial, of_results(results)))


def steps_worth(trial: Trial) -> int:
    """The number of steps to evaluate, so that a report takes seconds."""
    return max(150, MOST_LOOKS // max(1, len(trial.tensor_names())))


def evaluations_in(trial: Trial, rules: Sequence[RequestedRule] | None, most: int | None) -> int:
    """The number of evaluations if no rule ends early: the length of a progress bar."""
    steps, known = len(trial.steps()), default_rules()
    by_default = len(default_steps(trial, most))
    others = steps if most is None else min(steps, most)
    return sum(by_default if rule.rule in known else others for rule in rules_for(trial, rules))


def notes_on(trial: Trial, verdicts: Sequence[Verdict], most: int | None) -> list[str]:
    """Notes on what the rules did not evaluate."""
    steps = len(trial.steps())
    looks_everywhere = default_rules() if trial.observations.has_facts else ()
    if most is None or steps <= most or all(verdict.rule in looks_everywhere for verdict in verdicts):
        return []
    return [
        f"The rules evaluated {most:,} of {steps:,} steps, evenly spread; problems between them are not "
        "detected. Use --every-step to evaluate all steps, which takes longer."
    ]


def evaluated(
    trial: Trial,
    rules: Sequence[RequestedRule] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    most_steps: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """Evaluate the rules, by default those that judge the run.

    A rule may be a class in `file`.
    """
    results = evaluate(trial, rules, file=file, jobs=jobs, most_steps=most_steps, progress=progress)
    return of_results(results)


def write_page(to: str | os.PathLike[str], page: str) -> None:
    """Write the page, whole or not at all."""
    with whole_file(to) as place:
        # A path in the page may contain bytes that are not valid text.
        Path(place).write_text(page, encoding="utf-8", errors="replace")
