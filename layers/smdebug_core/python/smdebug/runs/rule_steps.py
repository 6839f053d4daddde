"""One rule at some steps of a saved run, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from smdebug.exceptions import (
    DamagedFile,
    NoMoreData,
    ObjectMissing,
    RuleEvaluationConditionMet,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.construction import make_rule
from smdebug.rules.generic import every_rule
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import evaluation_at_end
from smdebug.rules.rule_sets import documentation_of
from smdebug.rules.state import save_state
from smdebug.runs.opening import open_run
from smdebug.runs.rule_results import PartialResult, RuleResult, StepFindings
from smdebug.service.records import RuleConfiguration, RuleStatus
from smdebug.trials import Trial
from smdebug.trials.damaged_values import note_damage

MOST_EVIDENCE = 20  # findings kept of one step


@dataclass(frozen=True)
class RuleRequest:
    """What a process needs to construct the rule."""

    path: str
    configuration: RuleConfiguration
    file: str | None = None  # of a custom rule
    attempt: int | None = None  # of the training; the newest by default


def rule_class(name: str, file: str | None) -> type[Rule]:
    """Return the rule of that name: a class in the file, or a built-in rule."""
    from smdebug.rules.generic import find_rule
    from smdebug.rules.loading import load_rule_file, rules_in

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
    return make_rule(
        rule_class(configuration.rule, request.file),
        trial,
        configuration.parameters,
        lambda: [open_run(path) for path in configuration.other_trials],
    )


def evaluate_steps(rule: Rule, steps: Iterable[int]) -> PartialResult:
    """Invoke the rule at these steps, in order."""
    result = PartialResult()
    for step in steps:
        evaluate_step(rule, step, result)
        if result.is_over:
            break
    result.state = save_state(rule)
    return result


def evaluate_step(rule: Rule, step: int, result: PartialResult) -> None:
    """Invoke the rule at a step, and add the outcome to `result`; a damaged step is left out."""
    try:
        rule.invoke(step)
    except RuleEvaluationConditionMet as met:
        result.add(_findings_at(step, met, rule.base_trial))
        result.stopped = met.end_of_rule
    except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable):
        result.without_data += 1
        return
    except (DamagedFile, ObjectMissing) as error:
        note_damage(rule.base_trial, error)
        result.damaged += 1
        return
    except NoMoreData:
        result.stopped = True
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a custom rule can raise anything
        result.error = f"{type(error).__name__} at step {step}: {error}"
        return
    result.evaluated += 1
    result.without_data += rule.looked is False
    result.damaged += bool(rule.base_trial.observations.damage_at(step))
    result.not_checked = rule.not_checked or result.not_checked


def evaluate_end(rule: Rule, last_step: int, result: PartialResult) -> None:
    """Add what the rule finds at the end of the run, as findings of its last step."""
    try:
        met = evaluation_at_end(rule, last_step).met
    except (DamagedFile, ObjectMissing) as error:
        note_damage(rule.base_trial, error)
        result.damaged += 1
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a custom rule can raise anything
        result.error = f"{type(error).__name__} at the end of the run: {error}"
        return
    if met is None:
        return
    findings = _findings_at(last_step, met, rule.base_trial)
    if result.steps_found[-1:] == [last_step]:
        result.steps_found.pop()
        if result.found and result.found[-1].step == last_step:
            at_step = result.found.pop()
            together = (*at_step.findings, *findings.findings)[:MOST_EVIDENCE]
            count = at_step.count + findings.count
            findings = replace(findings, count=count, findings=together)
    result.add(findings)


def _findings_at(step: int, met: RuleEvaluationConditionMet, trial: Trial) -> StepFindings:
    mode, mode_step = trial.mode_modestep(step)
    return StepFindings(
        step=step,
        mode=None if mode is None else mode.name,
        mode_step=mode_step,
        count=len(met.findings),
        findings=tuple(finding.to_dict() for finding in met.findings[:MOST_EVIDENCE]),
    )


def steps_wanted(trial: Trial, configuration: RuleConfiguration) -> list[int]:
    """Return the steps of the run in the rule's range."""
    first, end = configuration.start_step, configuration.end_step
    return [step for step in trial.steps() if first <= step and (end is None or step < end)]


def result_of(
    configuration: RuleConfiguration,
    rule: Rule | type[Rule],
    result: PartialResult,
    steps: Sequence[int],
    *,
    seconds: float,
    processes: int = 1,
) -> RuleResult:
    """Return the result of a rule that has evaluated these steps."""
    status = RuleStatus.ISSUES_FOUND if result.steps_found else RuleStatus.NO_ISSUES_FOUND
    return RuleResult(
        name=configuration.name,
        rule=configuration.rule,
        parameters=dict(configuration.parameters),
        status=RuleStatus.ERROR if result.error else status,
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
        cause=rule.cause,
        advice=rule.advice,
        docs=""
        if configuration.source
        else docs_of(rule if isinstance(rule, type) else type(rule)),
        selection=str(getattr(rule, "selection", "")),
    )


def docs_of(rule: type[Rule]) -> str:
    """Return the address of the documentation of a built-in rule; "" for a custom one."""
    return documentation_of(rule.__name__) if rule.__name__ in every_rule() else ""
