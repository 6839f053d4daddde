"""Rules over a saved run, on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from smdebug.rules.rule_invoker import has_seen_all
from smdebug.runs.evaluation.choosing import rules_for
from smdebug.runs.evaluation.evaluated_rule import EvaluatedRule
from smdebug.runs.evaluation.parallel_rules import continue_evaluation, processes_worth, worker_for
from smdebug.runs.evaluation.rule_results import PartialResult, RuleResult, StepFindings
from smdebug.runs.evaluation.rule_steps import (
    RuleRequest,
    requests_for,
    result_of,
    rule_class,
    steps_wanted,
)
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial

WORTH_A_PROCESS = 64  # steps: fewer take less time than starting another process


@dataclass(frozen=True)
class _Options:
    """How to evaluate each rule."""

    jobs: int | None
    most_steps: int | None
    worth_a_process: int
    own_process: bool
    progress: Callable[[int], Any]


def evaluate(
    run: str | os.PathLike[str] | Trial,
    rules: Sequence[RequestedRule] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    default: bool = True,
    jobs: int | None = None,
    most_steps: int | None = None,
    worth_a_process: int = WORTH_A_PROCESS,
    own_process: bool = True,
    progress: Callable[[int], Any] = lambda steps: None,
) -> list[RuleResult]:
    """Evaluate rules on a saved run: those named, or else those that `rules_for` says judge it.

    A rule is the name of a built-in rule, an entry as rules.json has it, or a class in `file`. Without
    `default` the default rules are left out. No actions are taken. `progress` receives the number of steps
    completed since the last call. `jobs` limits the number of processes; without it, several are used if that
    is likely to be faster. With `most_steps` that many evenly spread steps are evaluated, but every step by
    the default rules of a run that holds observations: they need them all, and read little. Rules of
    `file` run in a process of their own, unless `own_process` is false: the caller is one already.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    options = _Options(jobs, most_steps, worth_a_process, own_process, progress)
    source = None if file is None else os.fspath(file)
    requests = requests_for(trial, rules_for(trial, rules, file=source, default=default), source)
    together = [EvaluatedRule(request, trial) for request in requests if request.is_default]
    _evaluate_together(together, trial, default_steps(trial, most_steps), progress)
    results = {rule.name: rule.so_far() for rule in together}
    return [
        results[request.configuration.name] if request.is_default else _evaluate_rule(request, trial, options)
        for request in requests
    ]


def default_steps(trial: Trial, most: int | None) -> list[int]:
    """Return the steps that the default rules evaluate if others evaluate at most so many."""
    steps = trial.steps()
    return steps if most is None or trial.observations.has_facts else thinned(steps, max(2, most))


def _evaluate_together(
    rules: Sequence[EvaluatedRule], trial: Trial, steps: Sequence[int], progress: Callable[[int], Any]
) -> None:
    """Evaluate the rules one step after the other, so that they share what was read of a step."""
    may_stand = not trial.loaded_all_steps and trial.observations.expected_workers > 1
    for step in steps if rules else ():
        for rule in rules:
            rule.evaluate(step)
        progress(len(rules))
    for rule in rules:
        rule.end()
        if may_stand:
            rule.in_silence()


def _evaluate_rule(request: RuleRequest, trial: Trial, options: _Options) -> RuleResult:
    begun = time.perf_counter()
    configuration = request.configuration
    steps = steps_wanted(trial, configuration)
    if options.most_steps is not None:
        steps = thinned(steps, max(2, options.most_steps))
    result = PartialResult()
    with closing(worker_for(request, trial, own_process=options.own_process)) as worker:
        first = steps[: max(2, options.worth_a_process // 4)]
        worker.evaluate(first, result)
        options.progress(len(first))
        rest = steps[len(first) :]
        processes = 1
        if rest and not result.is_over:
            each = (time.perf_counter() - begun) / len(first)
            worth = processes_worth(trial, len(rest), each, options.jobs, options.worth_a_process)
            processes = continue_evaluation(request, worker, result, rest, worth, options.progress)
        if steps and not result.is_over and has_seen_all(worker.rule_type, trial, steps[-1]):
            worker.end(steps[-1], result)
    result.note_damage(trial.damaged_files)
    return result_of(
        configuration,
        worker.rule_type,
        result,
        steps,
        selection=worker.selection,
        seconds=time.perf_counter() - begun,
        processes=processes,
    )


__all__ = [
    "RuleResult",
    "StepFindings",
    "default_steps",
    "evaluate",
    "rule_class",
    "steps_wanted",
]
