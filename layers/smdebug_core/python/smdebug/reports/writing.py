"""From a path to a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.reports.gathering import curves_of, gather
from smdebug.reports.page import page_of
from smdebug.reports.verdicts import Verdict, of_results
from smdebug.runs.comparing import compare
from smdebug.runs.evaluating import RuleResult, configurations, evaluate
from smdebug.runs.opening import open_run
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import RULES_FILE
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial

Wanted = str | RuleConfiguration | Mapping[str, Any]

MOST_LOOKS = 30_000  # steps times tensors that a rule looks at for a report

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
    every_step: bool = False,
    jobs: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """Let rules look at a saved run, and write what they say and what it holds to one file of HTML.

    Without `rules` they are those of the run's rules.json, or else the usual ones. Of a long run they look at
    evenly spread steps, unless it shall be `every_step`. With `other` the page tells where the two runs
    part. The verdicts are given back.
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
    """At how many steps rules look for a report: so that it takes seconds."""
    return max(150, MOST_LOOKS // max(1, len(trial.tensor_names())))


def looks_of(trial: Trial, rules: Sequence[Wanted] | None, most: int | None) -> int:
    """How many times a rule will look at a step, if none ends before: what a bar is measured by."""
    steps = len(trial.steps())
    if rules is None and not trial.storage.exists(RULES_FILE):
        asked = len(USUAL_RULES)
    else:
        asked = len(configurations(trial, rules))
    return asked * (steps if most is None else min(steps, most))


def notes_on(trial: Trial, verdicts: Sequence[Verdict], most: int | None) -> list[str]:
    """What the page has to admit."""
    steps = len(trial.steps())
    if most is None or steps <= most or not verdicts:
        return []
    return [
        f"The rules have looked at {most:,} of {steps:,} steps, evenly spread, so trouble between two "
        "of them is not seen here. To have them look at every step, which takes longer: --every-step."
    ]


def evaluated(
    trial: Trial,
    rules: Sequence[Wanted] | None = None,
    *,
    jobs: int | None = None,
    most_steps: int | None = None,
    progress: Callable[[int], Any] = lambda done: None,
) -> tuple[Verdict, ...]:
    """What the rules say; those of the usual ones that cannot be asked of this run are passed over."""
    asked: dict[str, Any] = {"jobs": jobs, "most_steps": most_steps, "progress": progress}
    if rules is not None or trial.storage.exists(RULES_FILE):
        return of_results(evaluate(trial, rules, **asked))
    results: list[RuleResult] = []
    for rule in USUAL_RULES:
        try:
            results += evaluate(trial, [rule], **asked)
        except SMDebugError:
            continue
    return of_results(results)


def write_page(to: str | os.PathLike[str], page: str) -> None:
    """Put the page there, whole or not at all."""
    with whole_file(to) as place:
        # A file system's names need not be text, and a path may be such a one.
        Path(place).write_text(page, encoding="utf-8", errors="replace")
