"""From a path to a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.reports.gathering import gather
from smdebug.reports.page import page_of
from smdebug.reports.verdicts import Verdict, of_results
from smdebug.runs.comparing import compare
from smdebug.runs.evaluating import evaluate
from smdebug.runs.opening import open_run
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import RULES_FILE
from smdebug.trials import Trial

Wanted = str | RuleConfiguration | Mapping[str, Any]

# What is worth asking of any training, where nobody says which rules are wanted.
USUAL_RULES = (
    *("ExplodingTensor", "VanishingGradient", "LossNotDecreasing", "AllZero", "WeightUpdateRatio"),
)


def write_report(
    run: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    rules: Sequence[Wanted] | None = None,
    other: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """Let rules look at a saved run, and write what they say and what it holds to one file of HTML.

    Without `rules` they are those of the run's rules.json, or else the usual ones. With `other` the page
    tells where the two runs part. The verdicts are given back.
    """
    trial = open_run(run)
    verdicts = evaluated(trial, run, rules, jobs=jobs, progress=progress)
    comparison = None if other is None else compare(trial, other)
    found = gather(trial, verdicts, progress=progress)
    write_page(to, page_of(found, comparison=comparison))
    return verdicts


def evaluated(
    trial: Trial,
    run: str | os.PathLike[str],
    rules: Sequence[Wanted] | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """What the rules say; those of the usual ones that need a parameter here are passed over."""
    if rules is None and not trial.storage.exists(RULES_FILE):
        return of_results(
            result for rule in USUAL_RULES for result in _tried(run, rule, jobs, progress)
        )
    return of_results(evaluate(run, rules, jobs=jobs, progress=progress))


def _tried(
    run: str | os.PathLike[str], rule: str, jobs: int | None, progress: Callable[[int], Any]
) -> list[Any]:
    try:
        return evaluate(run, [rule], jobs=jobs, progress=progress)
    except SMDebugError:
        return []


def write_page(to: str | os.PathLike[str], page: str) -> None:
    """Put the page there, whole or not at all."""
    target = Path(to).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.tmp")
    try:
        unfinished.write_text(page, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
