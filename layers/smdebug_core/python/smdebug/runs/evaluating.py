"""Rules over a saved run, on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.rules.rule_invoker import has_seen_all
from smdebug.rules.state import restore_state
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.runs.parallel_rules import continue_evaluation, processes_worth
from smdebug.runs.rule_results import PartialResult, RuleResult, StepFindings
from smdebug.runs.rule_steps import (
    RuleRequest,
    construct,
    evaluate_end,
    evaluate_steps,
    rule_class,
)
from smdebug.service.records import RequestedRule, RuleConfiguration, RuleStatus
from smdebug.service.rules_file import RULES_FILE, parse_rules
from smdebug.trials import Trial

WORTH_A_PROCESS = 64  # steps: fewer take less time than starting another process


@dataclass(frozen=True)
class _Options:
    """How to evaluate each rule."""

    jobs: int | None
    most_steps: int | None
    worth_a_process: int
    progress: Callable[[int], Any]


def evaluate(
    run: str | os.PathLike[str] | Trial,
    rules: Sequence[RequestedRule] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    most_steps: int | None = None,
    worth_a_process: int = WORTH_A_PROCESS,
    progress: Callable[[int], Any] = lambda steps: None,
) -> list[RuleResult]:
    """Evaluate rules on a saved run; without `rules`, those of the `rules.json` beside it.

    A rule is the name of a built-in rule, an entry as rules.json has it, or a class in `file`. No actions
    are taken. `progress` receives the number of steps completed since the last call. `jobs` limits the
    number of processes; without it, several are used if that is likely to be faster. With `most_steps`
    that many evenly spread steps are evaluated.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    source = None if file is None else os.fspath(file)
    options = _Options(jobs, most_steps, worth_a_process, progress)
    return [
        _evaluate_rule(
            RuleRequest(trial.storage.location, replace(configuration, actions=()), source),
            trial,
            options,
        )
        for configuration in configurations(trial, rules)
    ]


def configurations(
    trial: Trial, rules: Sequence[RequestedRule] | None
) -> tuple[RuleConfiguration, ...]:
    """Return the requested rules; raise `SMDebugValueError` if there are none."""
    if rules is None:
        try:
            data = trial.storage.read(RULES_FILE)
        except SMDebugError as error:
            raise SMDebugValueError(
                f"{trial.path} has no {RULES_FILE}, and no rules were named: name at least one rule"
            ) from error
        return parse_rules(data, file=RULES_FILE)
    found: list[RuleConfiguration] = []
    for rule in rules:
        if isinstance(rule, RuleConfiguration):
            found.append(rule)
        else:
            found += parse_rules([rule], file="the rules given")
    if not found:
        raise SMDebugValueError("No rules to evaluate: name at least one")
    return tuple(found)


def steps_wanted(trial: Trial, configuration: RuleConfiguration) -> list[int]:
    """Return the steps of the run in the rule's range."""
    first, end = configuration.start_step, configuration.end_step
    return [step for step in trial.steps() if first <= step and (end is None or step < end)]


def _evaluate_rule(request: RuleRequest, trial: Trial, options: _Options) -> RuleResult:
    begun = time.perf_counter()
    configuration = request.configuration
    steps = steps_wanted(trial, configuration)
    if options.most_steps is not None:
        steps = thinned(steps, max(2, options.most_steps))
    rule = construct(request, trial)
    first = steps[: max(2, options.worth_a_process // 4)]
    result = evaluate_steps(rule, first)
    options.progress(len(first))
    rest = steps[len(first) :]
    processes = 1
    if rest and not result.is_over:
        each = (time.perf_counter() - begun) / len(first)
        worth = processes_worth(trial, len(rest), each, options.jobs, options.worth_a_process)
        processes = continue_evaluation(request, rule, result, rest, worth, options.progress)
    if steps and not result.is_over and has_seen_all(rule, steps[-1]):
        restore_state(rule, result.state)  # another process may have evaluated the last steps
        evaluate_end(rule, steps[-1], result)
    return RuleResult(
        name=configuration.name,
        rule=configuration.rule,
        parameters=dict(configuration.parameters),
        status=_status(result),
        looked=result.evaluated,
        without_data=result.without_data,
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        found=tuple(result.found),
        steps_found=tuple(result.steps_found),
        error=result.error,
        seconds=time.perf_counter() - begun,
        processes=processes,
    )


def _status(result: PartialResult) -> RuleStatus:
    if result.error:
        return RuleStatus.ERROR
    return RuleStatus.ISSUES_FOUND if result.steps_found else RuleStatus.NO_ISSUES_FOUND


__all__ = ["RuleResult", "StepFindings", "configurations", "evaluate", "rule_class", "steps_wanted"]
