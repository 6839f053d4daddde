"""The base class of every rule: built-in, custom, or written years ago."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugError, SMDebugTypeError
from smdebug.logger import get_logger
from smdebug.rules.action import Actions
from smdebug.rules.findings import Finding, as_findings
from smdebug.rules.observed_run import ObservedRun
from smdebug.rules.req_tensors import RequiredTensors
from smdebug.trials.refreshing import no_refresh

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial


class Rule(ObservedRun, ABC):
    """Checks every step of a run: implement `invoke_at_step`, and return True if the condition is met.

        class LargeLoss(Rule):
            def __init__(self, base_trial, limit=10.0):
                super().__init__(base_trial)
                self.limit = float(limit)  # parameters arrive from JSON as strings

            def invoke_at_step(self, step):
                for name in self.base_trial.tensor_names(step=step, collection="losses"):
                    loss = self.base_trial.tensor(name).reduction_value(step, "mean")
                    if loss > self.limit:
                        self.findings.append(Finding(name, "mean", loss, self.limit))
                return bool(self.findings)

    `self.findings` is the evidence, empty before each step. Set `self.looked` to False at a step that has
    nothing to check, so that it does not count as passed; `self.skipped` maps the names of skipped tensors
    to the reason. If the run lacks what the rule needs, set `self.not_checked` to a sentence that says
    what is missing. `advice` holds sentences on what to try, by the cause of a finding. Other attributes
    that hold plain data are kept from step to step (`smdebug.rules.memory.state`). A rule that evaluates
    several steps together may implement `invoke_at_end`, for those that the end of the run cuts off.
    """

    advice: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """What to try, by the `cause` of a finding; "" is for any cause."""

    cause: ClassVar[str] = ""
    """The cause of findings that name none."""

    base_trial: Trial
    other_trials: list[Trial] | None
    trials: list[Trial]

    def __init__(
        self,
        base_trial: Trial,
        action_str: Any = None,
        other_trials: Sequence[Trial] | Trial | None = None,
    ):
        if _are_trials(action_str):  # the order of arguments before there were actions
            if other_trials is not None:
                raise SMDebugTypeError(
                    "Rule takes (base_trial, action_str, other_trials): action_str is a list of trials"
                )
            action_str, other_trials = None, action_str
        self.base_trial = base_trial
        self.other_trials = _as_list(other_trials)
        self.trials = [base_trial, *(self.other_trials or ())]
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
        self.logger = get_logger()
        self.rule_name = type(self).__name__
        self.findings: list[Any] = []
        self.looked: bool | None = None
        self.not_checked: str | None = None
        self.skipped: dict[str, str] = {}
        self.checked_value: float | Sequence[float] | None = None
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }
        self._actions = Actions(action_str, self.rule_name)
        self._step: int | None = None

    def set_required_tensors(self, step: int) -> None:
        """Optional: call `self.req_tensors.add(...)` for what this step needs; it is fetched together."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Return whether the condition is met at this global step; put the evidence in `self.findings`."""

    def invoke_at_end(self, step: int) -> bool:
        """Optional: return whether the condition is met at the end of the run.

        Called once, after `step`, the last step that this rule saw; the findings belong to that step.
        """
        return False

    def invoke(self, step: int) -> None:
        """Evaluate the rule at one global step, as soon as the base trial has it.

        `RuleEvaluationConditionMet` if the condition is met, with the `findings`; `StepUnavailable` if
        the step was not saved; `NoMoreData` if the training ended before it.
        """
        self.base_trial.wait_for_steps([step])
        self._step = step
        # The trial does not change while a rule reads it.
        with no_refresh(self.trials):
            self._begin_evidence()
            self.req_tensors.clear()
            self.set_required_tensors(step)
            # The name that tornasole documented for the same method.
            old_method = getattr(self, "required_tensors", None)
            if callable(old_method):
                old_method(step)
            self.req_tensors.fetch()
            met = self.invoke_at_step(step)
            findings = self._normalised_findings(step) if met else ()
        if met:
            self.raise_met(step, findings)
        if self.not_checked is not None:
            self.looked = False

    def invoke_end(self, step: int) -> None:
        """Evaluate the rule at the end of a run; `step` is the last step that it was invoked at.

        `RuleEvaluationConditionMet` if the condition is met. The rule's state is restored afterwards,
        because a run may be resumed.
        """
        if not asks_at_end(type(self)):
            return
        from smdebug.rules.memory.state import restore_state, save_state

        before = save_state(self)
        try:
            with no_refresh(self.trials):
                self._begin_evidence()
                met = self.invoke_at_end(step)
                findings = self._normalised_findings(step) if met else ()
        finally:
            restore_state(self, before)
        if met:
            self.raise_met(step, findings)

    def raise_met(self, step: int, findings: tuple[Finding, ...]) -> NoReturn:
        """Invoke the rule's actions on the findings, and raise `RuleEvaluationConditionMet` with them."""
        self._actions.invoke(_summary(step, findings), self.base_trial, findings)
        error = RuleEvaluationConditionMet(self.rule_name, step)
        error.findings = findings
        raise error

    def _begin_evidence(self) -> None:
        self.findings = []
        self.looked = None
        self.not_checked = None
        self.skipped = {}
        self.checked_value = None

    def _normalised_findings(self, step: int) -> tuple[Finding, ...]:
        try:
            found = as_findings(self.findings, names_a_tensor=self.base_trial.has_tensor)
        except SMDebugError as problem:
            # The rule fired, even if its evidence cannot be read.
            self.logger.warning("Rule %s, step %s: %s", self.rule_name, step, problem)
            found = [Finding(message=repr(self.findings)[:1000])]
        if self.cause:
            found = [item if item.cause else replace(item, cause=self.cause) for item in found]
        self.findings = found
        return tuple(found)


def asks_at_end(rule: type) -> bool:
    """Return whether the rule implements `invoke_at_end`."""
    return getattr(rule, "invoke_at_end", Rule.invoke_at_end) is not Rule.invoke_at_end


def _as_list(trials: Any) -> list[Trial] | None:
    if trials is None:
        return None
    return list(trials) if isinstance(trials, (list, tuple)) else [trials]


def _are_trials(value: Any) -> bool:
    """Return whether this is a trial, or a list of trials, rather than an action."""
    if isinstance(value, (list, tuple)):
        return all(_are_trials(item) for item in value)
    return hasattr(value, "tensor_names") and hasattr(value, "tensor")


def _summary(step: int, findings: Sequence[Finding]) -> str:
    if not findings:
        return f"Step {step}."
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"Step {step}: {findings[0]}{more}."
