"""Rules evaluated on a run while it grows, and what changes about its problems.

    following = Following(open_run("./my-run"))
    while not following.has_ended:
        for change in following.advance():
            print(change)

Each step is evaluated once, in order. Nothing here waits.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.runs.evaluation.choosing import rules_for
from smdebug.runs.evaluation.diagnosing import issues_of
from smdebug.runs.evaluation.evaluated_rule import EvaluatedRule
from smdebug.runs.evaluation.rule_results import RuleResult
from smdebug.runs.evaluation.rule_steps import requests_for
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial


class ChangeKind(Enum):
    """What happened to a problem."""

    OPENED = "opened"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class IssueChange:
    """A problem that was opened or resolved."""

    kind: ChangeKind
    step: int
    """The last step that was evaluated."""
    issue: Issue


class Following:
    """A run's rules, with their findings up to the last step that was evaluated."""

    def __init__(
        self,
        trial: Trial,
        rules: Sequence[RequestedRule] | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
    ):
        self.trial = trial
        self.last_step = -1
        self.has_ended = False
        source = None if file is None else os.fspath(file)
        self.rules = rules_for(trial, rules, file=source)
        """The rules as configured, with their actions, which nothing here takes."""
        self._followed = [
            EvaluatedRule(request, trial) for request in requests_for(trial, self.rules, source)
        ]
        self._open: dict[str, Issue] = {}
        self._seen: set[str] = set()
        self._all: tuple[Issue, ...] = ()

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Every problem so far, resolved ones included, the earliest first."""
        return self._all

    @property
    def open_issues(self) -> tuple[Issue, ...]:
        """The problems whose rules still detected them when they last checked."""
        return tuple(self._open.values())

    @property
    def failed(self) -> dict[str, str]:
        """The rules that failed, with their errors."""
        return {rule.name: rule.result.error for rule in self._followed if rule.result.error}

    @property
    def results(self) -> list[RuleResult]:
        """The result of each rule so far."""
        return [rule.so_far() for rule in self._followed]

    def advance(
        self, *, most_steps: int | None = None, progress: Callable[[int], Any] = lambda steps: None
    ) -> list[IssueChange]:
        """Evaluate the steps that are new, at most `most_steps` of them; return what changed."""
        known = self.trial.steps()
        ended = self.trial.loaded_all_steps
        if ended:  # steps may have come before the end and after the question
            known = self.trial.steps()
        steps = known[bisect_right(known, self.last_step) :]
        chosen = steps if most_steps is None else steps[:most_steps]
        for step in chosen:
            for rule in self._followed:
                rule.evaluate(step)
            self.last_step = step
            progress(1)
        if ended and len(chosen) == len(steps) and not self.has_ended:
            self.has_ended = True
            for rule in self._followed:
                rule.end()
        if not steps and not ended and self.trial.observations.expected_workers > 1:
            for rule in self._followed:
                rule.in_silence()
        return self._changes()

    def _changes(self) -> list[IssueChange]:
        found = any(rule.has_found_more() for rule in self._followed)
        if found:
            self._all = tuple(issues_of(self.trial, self.results))
        detecting = {rule.name for rule in self._followed if rule.detects}
        now = {key_of(issue): issue for issue in self._all if detecting.intersection(issue.all_rules)}
        # A problem may have come and gone within the steps evaluated together: it is opened all the same.
        reopened = {key for key in now if key not in self._open}
        changes = [
            IssueChange(ChangeKind.OPENED, self.last_step, issue)
            for issue in self._all
            if key_of(issue) not in self._seen or key_of(issue) in reopened
        ]
        was_open = {**self._open, **{key_of(change.issue): change.issue for change in changes}}
        changes += [
            IssueChange(ChangeKind.RESOLVED, self.last_step, issue)
            for key, issue in was_open.items()
            if key not in now
        ]
        self._seen.update(map(key_of, self._all))
        self._open = now
        return changes


def key_of(issue: Issue) -> str:
    """The identity of a problem among the issues of a run: its cause, or its rule if it has none."""
    return issue.cause or ", ".join(issue.rules)
