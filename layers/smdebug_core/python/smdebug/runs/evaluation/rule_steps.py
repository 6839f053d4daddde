"""One rule at some steps of a saved run, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.rules.asking import AT_END, IN_SILENCE, ask, error_sentence
from smdebug.rules.construction import make_rule
from smdebug.rules.findings import plain
from smdebug.rules.generic import every_rule, find_rule
from smdebug.rules.loading import find_in, load_rule_file, rules_in, rules_in_file
from smdebug.rules.memory.state import RuleState, restore_state, save_state
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved
from smdebug.rules.rule import Rule
from smdebug.rules.rule_sets import default_rules, documentation_of
from smdebug.runs.evaluation.rule_results import (
    MOST_EVIDENCE,
    PartialResult,
    RuleResult,
    StepFindings,
)
from smdebug.runs.opening import open_run
from smdebug.service.records import RuleConfiguration, RuleStatus
from smdebug.storage import open_storage
from smdebug.trials import Trial


@dataclass(frozen=True)
class RuleRequest:
    """What a process needs to construct the rule."""

    path: str
    configuration: RuleConfiguration
    file: str | None = None  # that defines the rule, if it is not built in
    attempt: int | None = None  # of the training; the newest by default

    @property
    def is_default(self) -> bool:
        """Whether the rule is one of the default set."""
        return self.file is None and self.configuration.rule in default_rules()


def requests_for(trial: Trial, rules: Iterable[RuleConfiguration], file: str | None) -> list[RuleRequest]:
    """Return a request for each rule, without its actions. `file` may define some of them."""
    in_file = {} if file is None else rules_in_file(file)
    return [
        RuleRequest(
            trial.storage.location,
            replace(rule, actions=()),
            file if find_in(in_file, rule.rule) else None,
            trial.attempt,
        )
        for rule in rules
    ]


def rule_class(name: str, file: str | None) -> type[Rule]:
    """Return the rule of that name: a class in the file, or a built-in rule."""
    if file is None:
        return find_rule(name).load()
    rules = rules_in(load_rule_file(file))
    for known, rule in rules.items():
        if known.lower() == name.lower():
            return rule
    if not rules:
        raise SMDebugValueError(f"{file} defines no rule: a class derived from smdebug.rules.Rule")
    try:
        return find_rule(name).load()
    except SMDebugValueError:
        known_names = ", ".join(rules)
        raise SMDebugValueError(f"{file} defines no rule {name!r}, but {known_names}") from None


def construct(request: RuleRequest, trial: Trial) -> Rule:
    """Construct the requested rule on that trial."""
    configuration = request.configuration
    if configuration.source is not None and request.file is None:
        raise SMDebugValueError(
            f"{configuration.name} is in {configuration.source}: fetch that file and give its path"
        )
    return construct_class(
        rule_class(configuration.rule, request.file),
        trial,
        configuration.parameters,
        lambda: [open_run(path) for path in configuration.other_trials],
    )


def construct_class(
    kind: type[Rule],
    trial: Trial,
    parameters: Mapping[str, Any],
    other_trials: Callable[[], Sequence[Trial]] = tuple,
) -> Rule:
    """Construct the rule; anything that its constructor raises is an `SMDebugValueError`."""
    try:
        return make_rule(kind, trial, parameters, other_trials)
    except SMDebugError:
        raise
    except (Exception, SystemExit) as error:  # a rule may raise anything
        raise SMDebugValueError(f"{kind.__name__} cannot be created: {error_sentence(error)}") from error


class LocalRule:
    """A rule that is evaluated in this process."""

    def __init__(self, request: RuleRequest, trial: Trial | None = None):
        self._request = request
        opened = trial or open_run(open_storage(request.path), attempt=request.attempt)
        self._rule = construct(request, opened)
        self.rule_type = type(self._rule)
        self.selection = str(getattr(self._rule, "selection", ""))

    @property
    def damaged_files(self) -> Mapping[str, SMDebugError]:
        """The files of the run that could not be read."""
        return self._rule.base_trial.damaged_files

    def evaluate(self, steps: Iterable[int], result: PartialResult) -> None:
        """Evaluate the rule at these steps, in order, and add the outcomes to `result`."""
        for step in steps:
            evaluate_step(self._rule, step, result)
            if result.is_over:
                break

    def end(self, step: int, result: PartialResult) -> None:
        """Add what the rule finds at the end of the run, after this last step."""
        evaluate_end(self._rule, step, result)

    def in_silence(self, step: int, result: PartialResult) -> bool:
        """Add what a default rule finds while nothing is saved after this step; return whether it does."""
        if not self._request.is_default or not hasattr(self._rule, "invoke_in_silence"):
            return False
        match ask(self._rule, step, IN_SILENCE):
            case Found() as found:
                result.add(_findings_at(step, found, self._rule.base_trial))
                return True
        return False

    def state(self) -> RuleState:
        """Return what the rule remembers."""
        return save_state(self._rule)

    def restore(self, state: RuleState) -> None:
        """Continue from this state."""
        restore_state(self._rule, state)

    def close(self) -> None:
        """Do nothing: it is in this process."""


def evaluate_step(rule: Rule, step: int, result: PartialResult) -> None:
    """Evaluate the rule at a step, and add the outcome to `result`; a damaged step is left out."""
    outcome = ask(rule, step)
    result.note_checked(plain(getattr(rule, "checked_value", None)))
    match outcome:
        case Found() as found:
            result.add(_findings_at(step, found, rule.base_trial))
            result.stopped = found.is_last
        case NotSaved(is_over=True):
            result.stopped = True
            return
        case NotSaved(is_damaged=True):
            result.damaged += 1
            return
        case NotSaved() | Behind():
            result.without_data += 1
            return
        case NothingToCheck(missing):
            result.without_data += 1
            result.not_checked = missing or result.not_checked
        case Failed(message):
            result.error = f"at step {step}: {message}"
            return
    result.evaluated += 1
    result.damaged += bool(rule.base_trial.observations.damage_at(step))


def evaluate_end(rule: Rule, last_step: int, result: PartialResult) -> None:
    """Add what the rule finds at the end of the run, as findings of its last step."""
    match ask(rule, last_step, AT_END):
        case Found() as found:
            result.add(_findings_at(last_step, found, rule.base_trial))
        case NotSaved(is_damaged=True):
            result.damaged += 1
        case Failed(message):
            result.error = f"at the end of the run: {message}"


def _findings_at(step: int, found: Found, trial: Trial) -> StepFindings:
    mode, mode_step = trial.mode_modestep(step)
    return StepFindings(
        step=step,
        mode=None if mode is None else mode.name,
        mode_step=mode_step,
        count=len(found.findings),
        findings=found.findings[:MOST_EVIDENCE],
    )


def steps_wanted(trial: Trial, configuration: RuleConfiguration) -> list[int]:
    """Return the steps of the run in the rule's range."""
    first, end = configuration.start_step, configuration.end_step
    return [step for step in trial.steps() if first <= step and (end is None or step < end)]


def result_of(
    configuration: RuleConfiguration,
    rule: type[Rule] | None,
    result: PartialResult,
    steps: Sequence[int],
    *,
    selection: str = "",
    seconds: float = 0.0,
    processes: int = 1,
) -> RuleResult:
    """Return the result of a rule that has evaluated these steps."""
    return RuleResult(
        name=configuration.name,
        rule=configuration.rule,
        parameters=dict(configuration.parameters),
        status=_status_of(result),
        looked=result.evaluated,
        without_data=result.without_data,
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        found=tuple(result.found),
        steps_found=tuple(result.steps_found),
        error=result.error,
        seconds=seconds,
        processes=processes,
        missing=result.not_checked,
        damaged=result.damaged,
        cause=rule.cause if rule else "",
        advice=rule.advice if rule else {},
        docs=docs_of(rule) if rule and not configuration.source else "",
        selection=selection,
        checked=result.checked,
    )


def _status_of(result: PartialResult) -> RuleStatus:
    if result.error:
        return RuleStatus.ERROR
    if result.steps_found:
        return RuleStatus.ISSUES_FOUND
    has_checked = result.evaluated > result.without_data
    return RuleStatus.NO_ISSUES_FOUND if has_checked else RuleStatus.NOT_CHECKED


def docs_of(rule: type[Rule]) -> str:
    """Return the address of the documentation of a built-in rule; "" for a custom one."""
    return documentation_of(rule.__name__) if rule.__name__ in every_rule() else ""
