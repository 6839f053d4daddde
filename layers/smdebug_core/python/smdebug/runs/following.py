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
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.exceptions import SMDebugError
from smdebug.rules.loading import find_in, rules_in_file
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import has_seen_all
from smdebug.rules.rule_sets import NOT_OBSERVED
from smdebug.runs.diagnosing import issues_of
from smdebug.runs.evaluating import configurations
from smdebug.runs.rule_results import PartialResult, RuleResult
from smdebug.runs.rule_steps import (
    RuleRequest,
    construct,
    evaluate_end,
    evaluate_step,
    result_of,
)
from smdebug.runs.together import is_default
from smdebug.service.records import RequestedRule, RuleConfiguration
from smdebug.trials import Trial


class Kind(Enum):
    """What happened to a problem."""

    OPENED = "opened"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Change:
    """A problem that was opened or resolved."""

    kind: Kind
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
        source = None if file is None else os.fspath(file)
        in_file = {} if source is None else rules_in_file(source)
        self.trial = trial
        self.last_step = -1
        self.has_ended = False
        self._followed = [
            _FollowedRule(
                RuleRequest(
                    trial.storage.location,
                    replace(rule, actions=()),
                    source if find_in(in_file, rule.rule) else None,
                ),
                trial,
            )
            for rule in configurations(trial, rules)
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
    ) -> list[Change]:
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
        return self._changes()

    def _changes(self) -> list[Change]:
        found = any(rule.has_found_more() for rule in self._followed)
        if found:
            self._all = tuple(issues_of(self.trial, self.results))
        detecting = {rule.name for rule in self._followed if rule.detects}
        now = {
            key_of(issue): issue for issue in self._all if detecting.intersection(issue.all_rules)
        }
        # A problem may have come and gone within the steps evaluated together: it is opened all the same.
        reopened = {key for key in now if key not in self._open}
        changes = [
            Change(Kind.OPENED, self.last_step, issue)
            for issue in self._all
            if key_of(issue) not in self._seen or key_of(issue) in reopened
        ]
        was_open = {**self._open, **{key_of(change.issue): change.issue for change in changes}}
        changes += [
            Change(Kind.RESOLVED, self.last_step, issue)
            for key, issue in was_open.items()
            if key not in now
        ]
        self._seen.update(map(key_of, self._all))
        self._open = now
        return changes


def key_of(issue: Issue) -> str:
    """The identity of a problem among the issues of a run: its cause, or its rule if it has none."""
    return issue.cause or ", ".join(issue.rules)


class _FollowedRule:
    """One of the rules, with its result so far."""

    def __init__(self, request: RuleRequest, trial: Trial):
        self.request = request
        self._trial = trial
        self.result = PartialResult()
        self.steps: list[int] = []
        self.detects = False
        self._known = 0
        self._rule: Rule | None = None
        try:
            self._rule = construct(request, trial)
        except SMDebugError as error:
            self.result.error = str(error)

    @property
    def configuration(self) -> RuleConfiguration:
        return self.request.configuration

    @property
    def name(self) -> str:
        return self.configuration.name

    def evaluate(self, step: int) -> None:
        end = self.configuration.end_step
        if self._rule is None or self.result.is_over or step < self.configuration.start_step:
            return
        if end is not None and step >= end:
            return
        self.steps.append(step)
        evaluated = self.result.evaluated - self.result.without_data
        evaluate_step(self._rule, step, self.result)
        if self.result.steps_found[-1:] == [step]:
            self.detects = True
        elif self.result.evaluated - self.result.without_data > evaluated:
            self.detects = False

    def end(self) -> None:
        rule, steps = self._rule, self.steps
        if rule is None or not steps or not self.result.evaluated or self.result.is_over:
            return
        if has_seen_all(rule, steps[-1]):
            before = len(self.result.steps_found)
            evaluate_end(rule, steps[-1], self.result)
            self.detects = self.detects or len(self.result.steps_found) > before

    def has_found_more(self) -> bool:
        """Return whether there are findings since the last call."""
        known, self._known = self._known, len(self.result.steps_found)
        return self._known > known

    def so_far(self) -> RuleResult:
        rule = self._rule or Rule  # one that could not be made has failed
        if is_default(self.request) and self.steps and not self._trial.observations.exist:
            self.result.not_checked = NOT_OBSERVED
        return result_of(self.configuration, rule, self.result, self.steps, seconds=0.0)
