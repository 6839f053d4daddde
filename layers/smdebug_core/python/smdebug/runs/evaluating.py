"""Rules over a saved run, on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.files.names import FACTS
from smdebug.rules.construction import make_rule
from smdebug.rules.generic import catalog
from smdebug.rules.rule_invoker import has_seen_all
from smdebug.rules.rule_sets import ALL, DEFAULT, SET_NAMES, USUAL, USUAL_RULES, default_rules
from smdebug.rules.state import restore_state
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.runs.parallel_rules import continue_evaluation, processes_worth
from smdebug.runs.rule_results import RuleResult, StepFindings
from smdebug.runs.rule_steps import (
    RuleRequest,
    construct,
    evaluate_end,
    evaluate_steps,
    result_of,
    rule_class,
    steps_wanted,
)
from smdebug.runs.together import evaluate_together, is_default
from smdebug.service.records import RequestedRule, RuleConfiguration
from smdebug.service.rules_file import RULES_FILE, parse_rules
from smdebug.trials import Trial

# Its page describes trees, so a set includes it only for runs of XGBoost.
_WRITES_A_PAGE = ("CreateXgboostReport",)
_XGBOOST_COLLECTIONS = {"feature_importance", "hyperparameters", "trees"}
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
    """Evaluate rules on a saved run; without `rules`, those of its `rules.json`, or else the default set.

    A rule is the name of a built-in rule, an entry as rules.json has it, or a class in `file`. No actions
    are taken. `progress` receives the number of steps completed since the last call. `jobs` limits the
    number of processes; without it, several are used if that is likely to be faster. With `most_steps`
    that many evenly spread steps are evaluated, but every step by the default rules, which need them all.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    source = None if file is None else os.fspath(file)
    options = _Options(jobs, most_steps, worth_a_process, progress)
    requests = [
        RuleRequest(
            trial.storage.location, replace(configuration, actions=()), source, trial.attempt
        )
        for configuration in configurations(trial, rules)
    ]
    together = [request for request in requests if is_default(request)]
    results = dict(
        zip(
            (request.configuration.name for request in together),
            evaluate_together(together, trial, progress=progress),
            strict=True,
        )
    )
    return [
        results[request.configuration.name]
        if is_default(request)
        else _evaluate_rule(request, trial, options)
        for request in requests
    ]


def configurations(
    trial: Trial, rules: Sequence[RequestedRule] | None
) -> tuple[RuleConfiguration, ...]:
    """Return the requested rules, with those of a set in its place; `SMDebugValueError` if there are none.

    Without `rules` they are those of the run's rules.json, or else the default set.
    """
    if rules is None:
        if trial.storage.exists(RULES_FILE):
            return parse_rules(trial.storage.read(RULES_FILE), file=RULES_FILE)
        rules = [DEFAULT]
    found: list[RuleConfiguration] = []
    for rule in rules:
        if isinstance(rule, RuleConfiguration):
            found.append(rule)
        elif isinstance(rule, str) and rule.lower() in SET_NAMES:
            members = rules_of_set(trial, rule.lower())
            found += (RuleConfiguration(name=name, rule=name) for name in members)
        else:
            found += parse_rules([rule], file="the rules given")
    if not found:
        raise SMDebugValueError("No rules to evaluate: name at least one")
    return tuple(found)


def suitable_rules(trial: Trial) -> tuple[RuleConfiguration, ...]:
    """Return the rules that can judge this run: its own, with the default set or else the usual rules.

    The default set checks observations; a run that saved only tensors is judged by the usual rules.
    """
    own: tuple[RuleConfiguration, ...] = ()
    if trial.storage.exists(RULES_FILE):
        own = parse_rules(trial.storage.read(RULES_FILE), file=RULES_FILE)
    names = {rule.name for rule in own}
    has_facts = trial.observations.exist and trial.index.has_tensor(FACTS)
    chosen = rules_of_set(trial, DEFAULT if has_facts else USUAL) or rules_of_set(trial, DEFAULT)
    others = (RuleConfiguration(name=name, rule=name) for name in chosen if name not in names)
    return (*own, *others)


def rules_of_set(trial: Trial, name: str) -> list[str]:
    """Return the names of the rules in a set, as far as they apply to the run.

    `default` is the default set (where it is not installed, `usual`), `usual` what evaluated a run before
    there was one, and `all` every rule of the original's names that needs no parameter.
    """
    if name == DEFAULT and default_rules():
        return list(default_rules())
    known = catalog()
    found = []
    for rule in known if name == ALL else USUAL_RULES:
        entry = known[rule]
        try:
            make_rule(entry.load(), trial, {})
        except SMDebugError:
            continue
        if rule not in _WRITES_A_PAGE or _XGBOOST_COLLECTIONS & set(trial.collections()):
            found.append(rule)
    return found


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
    seconds = time.perf_counter() - begun
    return result_of(configuration, rule, result, steps, seconds=seconds, processes=processes)


__all__ = [
    "RuleResult",
    "StepFindings",
    "configurations",
    "evaluate",
    "rule_class",
    "steps_wanted",
    "suitable_rules",
]
