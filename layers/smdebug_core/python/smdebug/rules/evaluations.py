"""Evaluate a rule at every step of a run, in order, as its steps become available."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from logging import DEBUG, WARNING
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import (
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
)
from smdebug.logger import get_logger
from smdebug.rules.asking import AT_END, AT_STEP, ask
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved, Outcome
from smdebug.rules.rule import Rule, asks_at_end

if TYPE_CHECKING:
    from smdebug.rules.findings import Finding


class Evaluation(NamedTuple):
    """One rule at one step, or at the end of the run after that step."""

    step: int
    outcome: Outcome | Behind
    at_end: bool = False

    @property
    def met(self) -> RuleEvaluationConditionMet | None:
        """The condition, if it was met."""
        error = self.outcome.error if isinstance(self.outcome, Found) else None
        return error if isinstance(error, RuleEvaluationConditionMet) else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.met.findings if self.met else ()


def invoke_rule(
    rule_obj: Rule,
    start_step: int = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Invoke the rule at every global step from `start_step` up to, but not including, `end_step`.

    Without an `end_step` it continues until the training ends, and then raises `NoMoreData`: that is the
    expected end. A step at which the rule finds something is logged, or with `raise_eval_cond` raised
    as `RuleEvaluationConditionMet`. Steps and tensors that were not saved are skipped.
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
    """Call `invoke_rule`, under the name that tornasole documented."""
    invoke_rule(rule_obj, start_step, end_step, raise_eval_cond)


def evaluations(rule_obj: Rule, start_step: int = 0, end_step: int | None = None) -> Iterator[Evaluation]:
    """Yield the rule's evaluations, step by step, as the steps of its base trial become available.

    When the training has ended and its last step was evaluated, the rule's end check runs as well.
    Raises `NoMoreData` if the training ended before `end_step`.
    """
    get_logger().info("Started execution of rule %s at step %s", rule_obj.rule_name, start_step)
    had_data, evaluated = False, 0
    skipped: dict[str, str] = {}
    last: int | None = None
    over: BaseException | None = None
    for step in _steps_to_evaluate(rule_obj.base_trial, start_step, end_step):
        evaluation = _evaluation(rule_obj, step)
        match evaluation.outcome:
            case Found(is_last=True):
                yield evaluation
                return
            case NotSaved(is_over=True, error=NoMoreProfilerData()):
                return
            case NotSaved(is_over=True, error=error):
                over = error
                break
            case NotSaved(reason, is_damaged=is_damaged, error=error):
                get_logger().log(WARNING if is_damaged else DEBUG, "%s", reason)
                yield evaluation
                if isinstance(error, StepUnavailable):
                    continue
            case outcome:
                yield evaluation
                evaluated += 1
                had_data = had_data or not isinstance(outcome, NothingToCheck)
                if not had_data:
                    skipped.update(rule_obj.skipped)
        last = step
    if last is not None and (over or has_seen_all(type(rule_obj), rule_obj.base_trial, last)):
        at_end = _evaluation(rule_obj, last, AT_END)
        if at_end.met is not None:
            had_data = True
            yield at_end
    if evaluated and not had_data:
        _warn_of_no_data(rule_obj, evaluated, skipped)
    if over is not None:
        raise over


def _evaluation(rule: Rule, step: int, occasion: str = AT_STEP) -> Evaluation:
    """Evaluate the rule, and raise its own errors: whoever invokes a rule wants to see them."""
    outcome = ask(rule, step, occasion)
    if isinstance(outcome, Failed) and outcome.error is not None:
        raise outcome.error
    return Evaluation(step, outcome, at_end=occasion == AT_END)


def has_seen_all(rule: type[Rule], trial: Any, last_step: int) -> bool:
    """Return whether the run has ended with that step; False for rules without an end check."""
    if not asks_at_end(rule) or not callable(getattr(trial, "steps", None)):
        return False
    return trial.steps()[-1:] == [last_step] and bool(trial.loaded_all_steps)


def _warn_of_no_data(rule_obj: Rule, evaluated: int, skipped: Mapping[str, str]) -> None:
    names = rule_obj.base_trial.tensor_names()
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    selection = getattr(rule_obj, "selection", None)
    wanted = f" It checks {selection}." if selection else ""
    reasons = [f"{name} ({reason})" for name, reason in list(skipped.items())[:5]]
    get_logger().warning(
        "Rule %s had nothing to check at any of %s steps.%s Saved tensors: %s%s.%s",
        rule_obj.rule_name,
        evaluated,
        wanted,
        ", ".join(names[:20]),
        more,
        f" Skipped: {', '.join(reasons)}." if reasons else "",
    )


def _steps_to_evaluate(trial: Any, start_step: int, end_step: int | None) -> Iterator[int]:
    """Yield every step in the range, except those that are known not to have been saved.

    Where a later step can be read, a missing earlier one will never arrive. Only beyond the last known
    step does it take an invocation to find out, and to wait.
    """
    step = start_step
    known: Iterator[int] = iter(())
    while end_step is None or step < end_step:
        following = next((saved for saved in known if saved >= step), None)
        if following is None:
            known = iter(_steps_from(trial, step))
            following = next(known, None)
        if following is None:
            following = step
        elif end_step is not None and following >= end_step:
            return
        yield following
        step = following + 1


def _steps_from(trial: Any, first: int) -> list[int]:
    steps = getattr(trial, "steps", None)  # a profiler's trial has timestamps instead
    return [step for step in steps() if step >= first] if callable(steps) else []
