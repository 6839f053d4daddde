"""From the path of a run to the file of its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.reports.curves import curves_of
from smdebug.reports.gathering import gather
from smdebug.reports.page import page_of
from smdebug.reports.verdicts import Verdict, of_results
from smdebug.runs.comparing import compare
from smdebug.runs.evaluating import RuleResult, configurations, evaluate
from smdebug.runs.opening import open_run
from smdebug.service.records import RequestedRule
from smdebug.service.rules_file import RULES_FILE
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial

MOST_LOOKS = 30_000  # steps times tensors that a rule evaluates for a report

# The rules worth evaluating on any training.
USUAL_RULES = (
    *("ExplodingTensor", "VanishingGradient", "LossNotDecreasing", "AllZero", "WeightUpdateRatio"),
)


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

    Without `rules` they are those of the run's rules.json, or else the usual ones. They evaluate evenly
    spread steps of a long run, or `every_step`. With `other` the page shows where the two runs diverge.
    """
    trial = open_run(run)
    most = None if every_step else steps_worth(trial)
    verdicts = evaluated(trial, rules, jobs=jobs, most_steps=most, progress=progress)
    against = None if other is None else open_run(other)
    comparison = None if against is None else compare(trial, against)
    found = gather(trial, verdicts, notes=notes_on(trial, verdicts, most), progress=progress)
    write_page(
        to,
        page_of(found, comparison=comparison, others=() if against is None else curves_of(against)),
    )
    return verdicts


def steps_worth(trial: Trial) -> int:
    """The number of steps to evaluate, so that a report takes seconds."""
    return max(150, MOST_LOOKS // max(1, len(trial.tensor_names())))


def looks_of(trial: Trial, rules: Sequence[RequestedRule] | None, most: int | None) -> int:
    """The number of evaluations if no rule ends early: the length of a progress bar."""
    steps = len(trial.steps())
    if rules is None and not trial.storage.exists(RULES_FILE):
        count = len(USUAL_RULES)
    else:
        count = len(configurations(trial, rules))
    return count * (steps if most is None else min(steps, most))


def notes_on(trial: Trial, verdicts: Sequence[Verdict], most: int | None) -> list[str]:
    """Notes on what the rules did not evaluate."""
    steps = len(trial.steps())
    if most is None or steps <= most or not verdicts:
        return []
    return [
        f"The rules evaluated {most:,} of {steps:,} steps, evenly spread; problems between them are not "
        "detected. Use --every-step to evaluate all steps, which takes longer."
    ]


def evaluated(
    trial: Trial,
    rules: Sequence[RequestedRule] | None = None,
    *,
    jobs: int | None = None,
    most_steps: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """Evaluate the rules; the usual ones that do not apply to this run are skipped."""
    options: dict[str, Any] = {"jobs": jobs, "most_steps": most_steps, "progress": progress}
    if rules is not None or trial.storage.exists(RULES_FILE):
        return of_results(evaluate(trial, rules, **options))
    results: list[RuleResult] = []
    for rule in USUAL_RULES:
        try:
            results += evaluate(trial, [rule], **options)
        except SMDebugError:
            continue
    return of_results(results)


def write_page(to: str | os.PathLike[str], page: str) -> None:
    """Write the page, whole or not at all."""
    with whole_file(to) as place:
        # A path in the page may contain bytes that are not valid text.
        Path(place).write_text(page, encoding="utf-8", errors="replace")
