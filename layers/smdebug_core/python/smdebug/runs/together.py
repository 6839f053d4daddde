"""Evaluate the default rules on a saved run step by step, so that they share what was read of a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import has_seen_all
from smdebug.rules.rule_sets import NOT_OBSERVED, default_rules
from smdebug.runs.rule_results import PartialResult, RuleResult
from smdebug.runs.rule_steps import (
    RuleRequest,
    construct,
    evaluate_end,
    evaluate_step,
    result_of,
    rule_class,
    steps_wanted,
)
from smdebug.trials import Trial


def is_default(request: RuleRequest) -> bool:
    """Return whether the rule is one of the default set."""
    return request.file is None and request.configuration.rule in default_rules()


def evaluate_together(
    requests: Sequence[RuleRequest],
    trial: Trial,
    progress: Callable[[int], Any] = lambda steps: None,
) -> list[RuleResult]:
    """Evaluate the rules at each step, one step after the other; return a result for each rule."""
    parts = [_Part(request, trial) for request in requests]
    if parts and not trial.observations.exist:
        for part in parts:
            part.result.not_checked = NOT_OBSERVED
            progress(len(part.steps))
    else:
        for step in sorted({step for part in parts for step in part.steps}):
            for part in parts:
                part.evaluate(step)
            progress(len(parts))
    return [part.finish() for part in parts]


class _Part:
    """One of the rules, with its result so far."""

    def __init__(self, request: RuleRequest, trial: Trial):
        self.request = request
        self.result = PartialResult()
        self.seconds = 0.0
        self.steps = steps_wanted(trial, request.configuration)
        self._wanted = frozenset(self.steps)
        self._rule: Rule | None = None
        try:
            self._rule = construct(request, trial)
        except SMDebugError as error:
            self.result.error = str(error)

    def evaluate(self, step: int) -> None:
        if self._rule is None or self.result.is_over or step not in self._wanted:
            return
        begun = time.perf_counter()
        evaluate_step(self._rule, step, self.result)
        self.seconds += time.perf_counter() - begun

    def finish(self) -> RuleResult:
        rule, steps = self._rule, self.steps
        if rule is not None and steps and self.result.evaluated and not self.result.is_over:
            begun = time.perf_counter()
            if has_seen_all(rule, steps[-1]):
                evaluate_end(rule, steps[-1], self.result)
            self.seconds += time.perf_counter() - begun
        configuration = self.request.configuration
        return result_of(
            configuration,
            rule or rule_class(configuration.rule, None),
            self.result,
            steps,
            seconds=self.seconds,
        )
