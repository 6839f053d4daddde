"""Invoke a rule over the steps of a run: from Python, or `python -m smdebug.rules.rule_invoker --help`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    SMDebugError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.logger import get_logger
from smdebug.rules.rule import Rule, asks_at_end

if TYPE_CHECKING:
    from smdebug.rules.findings import Finding


class Evaluation(NamedTuple):
    """One rule at one step: what it found, or what was missing."""

    step: int
    met: RuleEvaluationConditionMet | None = None
    missing: SMDebugError | None = None
    at_end: bool = False  # found at the end of the run, after its last step was evaluated

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.met.findings if self.met else ()


def invoke_rule(
    rule_obj: Rule,
    start_step: int = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Invoke the rule at every global step from `start_step` up to, and without, `end_step`.

    Without an `end_step` it goes on until the training ends, and then raises `NoMoreData`: that is the
    expected end. A step at which the rule finds something is logged, or with `raise_eval_cond` raised
    as `RuleEvaluationConditionMet`. Steps and tensors that were not saved are passed over.
    """
    logger = get_logger()
    for evaluation in evaluations(rule_obj, start_step, end_step):
        if evaluation.met is None:
            continue
        if raise_eval_cond:
            raise evaluation.met
        first = f": {evaluation.findings[0]}" if evaluation.findings else ""
        logger.info("%s%s", evaluation.met, first)
    if end_step is not None:
        logger.info("Ended execution of rule %s at end_step %s", rule_obj.rule_name, end_step)


def invoke(
    rule_obj: Rule,
    start_step: int = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """`invoke_rule` under the name that tornasole documented."""
    invoke_rule(rule_obj, start_step, end_step, raise_eval_cond)


def evaluations(
    rule_obj: Rule, start_step: int = 0, end_step: int | None = None
) -> Iterator[Evaluation]:
    """The rule's evaluations, step by step, as the steps of its base trial become available.

    When the training has ended, and the rule has seen its last step, it is asked about the end as well.
    Raises `NoMoreData` when the training has ended before `end_step`.
    """
    get_logger().info("Started execution of rule %s at step %s", rule_obj.rule_name, start_step)
    looked, evaluated = False, 0
    passed_over: dict[str, str] = {}
    last: int | None = None
    no_more: NoMoreData | None = None
    for step in _steps_worth_a_look(rule_obj.base_trial, start_step, end_step):
        try:
            rule_obj.invoke(step)
            looked, evaluated = looked or rule_obj.looked is not False, evaluated + 1
            if not looked:
                passed_over.update(rule_obj.skipped)
        except RuleEvaluationConditionMet as met:
            yield Evaluation(step, met=met)
            looked = True
            if met.end_of_rule:
                return
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as missing:
            get_logger().debug("%s", missing)
            yield Evaluation(step, missing=missing)
            if isinstance(missing, StepUnavailable):
                continue
        except NoMoreProfilerData:
            return
        except NoMoreData as error:
            no_more = error
            break
        else:
            yield Evaluation(step)
        last = step
    if last is not None and (no_more or has_seen_all(rule_obj, last)):
        at_end = evaluation_at_end(rule_obj, last)
        if at_end.met is not None:
            looked = True
            yield at_end
    if evaluated and not looked:
        _warn_of_nothing_seen(rule_obj, evaluated, passed_over)
    if no_more is not None:
        raise no_more


def evaluation_at_end(rule_obj: Rule, last_step: int) -> Evaluation:
    """What the rule says at the end of a run, of which that was the last step it was invoked at."""
    try:
        if asks_at_end(type(rule_obj)):
            rule_obj.invoke_end(last_step)
    except RuleEvaluationConditionMet as met:
        return Evaluation(last_step, met=met, at_end=True)
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as missing:
        return Evaluation(last_step, missing=missing, at_end=True)
    return Evaluation(last_step, at_end=True)


def has_seen_all(rule_obj: Rule, last_step: int) -> bool:
    """Has the run ended, and with that step? Asked only for rules that have something to say then."""
    trial = rule_obj.base_trial
    if not asks_at_end(type(rule_obj)) or not callable(getattr(trial, "steps", None)):
        return False
    return trial.steps()[-1:] == [last_step] and trial.loaded_all_steps


def _warn_of_nothing_seen(rule_obj: Rule, evaluated: int, passed_over: Mapping[str, str]) -> None:
    names = rule_obj.base_trial.tensor_names()
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    selection = getattr(rule_obj, "selection", None)
    wanted = f" It looks at what {selection}." if selection else ""
    reasons = [f"{name} ({reason})" for name, reason in list(passed_over.items())[:5]]
    get_logger().warning(
        "Rule %s had nothing to look at in any of %s steps.%s Saved were: %s%s.%s",
        rule_obj.rule_name,
        evaluated,
        wanted,
        ", ".join(names[:20]),
        more,
        f" Passed over: {', '.join(reasons)}." if reasons else "",
    )


def _steps_worth_a_look(trial: Any, start_step: int, end_step: int | None) -> Iterator[int]:
    """Every step in the range but those that are known not to have been saved.

    Where a later step can be read, what lies before it and is not there will never come. Only past
    the last known step does it take an invocation to find out, and to wait.
    """
    step = start_step
    known: Iterator[int] = iter(())
    while end_step is None or step < end_step:
        following = next((one for one in known if one >= step), None)
        if following is None:
            known = iter(_steps_from(trial, step))
            following = next(known, None)
        if following is None:
            following = step
        elif end_step is not None and following >= end_step:
            return
        yield following
        step = following + 1


def _steps_from(trial: Any, step: int) -> list[int]:
    steps = getattr(trial, "steps", None)  # a profiler's trial has timestamps instead
    return [one for one in steps() if one >= step] if callable(steps) else []


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    from smdebug.rules.command_line import main as command_line

    return command_line(argv)


if __name__ == "__main__":
    sys.exit(main())
