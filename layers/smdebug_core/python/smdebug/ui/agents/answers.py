"""The answers to an agent: what commands answer in JSON, bounded, with text of runs marked as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from smdebug.amounts import as_json_number
from smdebug.diagnosis import CAUSES, Issue, Symptom
from smdebug.diagnosis.wording import title_of
from smdebug.rules.generic import every_rule
from smdebug.runs.comparing import Comparison
from smdebug.runs.evaluation.diagnosing import Diagnosis
from smdebug.runs.listing import ListedRun
from smdebug.runs.overview import thinned
from smdebug.runs.tensors import TensorAtStep
from smdebug.runs.training_loss import TrainingLoss
from smdebug.service.records import RuleConfiguration
from smdebug.trials import Trial
from smdebug.ui.agents.around import changed_facts, changed_tensors, scalars_near, window_at
from smdebug.ui.agents.bounding import fitted
from smdebug.ui.agents.marking import NOTE, all_marked, marked

MOST_PROBLEMS = 8
MOST_PLACES = 5
MOST_SYMPTOMS = 4
MOST_CHANGES = 40
MOST_STEPS = 24
_SHORT = 80


class Seen(Protocol):
    """A run that was opened for an agent."""

    @property
    def name(self) -> str: ...
    @property
    def trial(self) -> Trial: ...


def runs_answer(
    runs: Sequence[ListedRun], total: int, *, shown_name: Callable[[ListedRun], str]
) -> dict[str, Any]:
    """Return the runs of the places; `total` is how many there are."""
    listed = [
        {
            "run": marked(shown_name(run)),
            "state": run.state,
            "steps": run.steps,
            "last_step": run.last_step,
            "loss": _number(run.loss),
            "lowest_loss": _number(run.best_loss),
            "saved_at": None if run.saved_at is None else run.saved_at.isoformat(timespec="seconds"),
            **({"tags": all_marked(run.origin.tags[:MOST_PLACES], _SHORT)} if run.origin.tags else {}),
            **({"trouble": marked(run.error)} if run.error else {}),
        }
        for run in runs
    ]
    answer = fitted({"note": NOTE, "total": total, "runs": listed}, ["runs"])
    if len(answer["runs"]) < total:
        answer["cut"] = [f"runs: {len(answer['runs'])} of {total}; give a part of the name as `contains`"]
    return answer


def diagnosis_answer(run: Seen, found: Diagnosis, loss: TrainingLoss | None) -> dict[str, Any]:
    """Return what is wrong with a run, what changed where it began, and what to try: everything at once."""
    trial = run.trial
    steps = trial.steps()
    issues = found.issues
    first = issues[0].since if issues else None
    changes = [] if first is None or not steps else _changes(trial, min(first, steps[-1]))
    answer: dict[str, Any] = {
        "note": NOTE,
        "run": marked(run.name),
        "verdict": verdict_of(found),
        "state": trial.state,
        "steps": len(steps),
        "last_step": steps[-1] if steps else None,
        "loss": _loss(loss),
        "problems": [problem_answer(issue) for issue in issues],
        "changed_at": first,
        "changed": changes[:MOST_PLACES],
        "passed": [_rule(name) for name in found.passed],
        "not_checked": [_rule(name) for name in found.not_checked],
        "failed_rules": [f"{_rule(name)}: {marked(why)}" for name, why in found.failed.items()],
        "missing_steps": marked(found.unread) if found.unread else "",
        "next": _next(issues),
    }
    lists = ["not_checked", "passed", "changed", "failed_rules", "problems"]
    return fitted(answer, lists, totals={"changed": len(changes)}, essential="problems")


def verdict_of(found: Diagnosis) -> str:
    """Return `failing`, `incomplete`, `not checked` or `nothing wrong`."""
    if found.issues or any(result.has_found for result in found.results):
        return "failing"
    if found.failed or found.unread:
        return "incomplete"
    return "nothing wrong" if found.passed else "not checked"


def problem_answer(issue: Issue) -> dict[str, Any]:
    """Return one problem: its cause, evidence, symptoms, and what to try."""
    places = [*issue.where, *issue.workers]
    return {
        "cause": _cause(issue.cause),
        "title": _title(issue),
        "since": issue.since,
        "last": issue.last,
        "what": marked(issue.what),
        "where": all_marked(places[:MOST_PLACES], _SHORT),
        "number_of_places": len(places),
        "why": all_marked(issue.why),
        "symptoms": [
            {"cause": _cause(symptom.cause), "since": symptom.since, "what": marked(symptom.what)}
            for symptom in issue.symptoms[:MOST_SYMPTOMS]
        ],
        "number_of_symptoms": len(issue.symptoms),
        "try": all_marked(issue.advice),
        "resume_from": None
        if issue.resume_from is None
        else {"after_step": issue.resume_from.step, "path": marked(issue.resume_from.path)},
        "rules": [_rule(name) for name in issue.rules],
    }


def around_answer(run: Seen, step: int, issues: Sequence[Issue] = ()) -> dict[str, Any]:
    """Return what changed near a step: scalars, facts, tensors, and the problems that began there."""
    trial = run.trial
    window = window_at(trial, step)
    reached = range(window.before[-1] if window.before else 0, window.after[-1] + 1)
    scalars = scalars_near(trial, step)
    changes = _changes(trial, step)
    answer = {
        "note": NOTE,
        "run": marked(run.name),
        "step": step,
        "compared": {"before": list(window.before), "from_there": list(window.after)},
        "scalars": [
            {
                "name": marked(name, _SHORT),
                "step_and_value": [[at, _number(value)] for at, value in points],
            }
            for name, points in scalars.items()
        ],
        "facts": [
            {"fact": marked(name, _SHORT), "before": marked(was, _SHORT), "now": marked(now, _SHORT)}
            for name, was, now in changed_facts(trial, window)
        ],
        "tensors": changes[:MOST_CHANGES],
        "problems": [
            {"cause": _cause(issue.cause), "title": _title(issue), "since": issue.since}
            for issue in issues
            if issue.since in reached
        ],
    }
    lists = ["tensors", "facts", "scalars", "problems"]
    return fitted(answer, lists, totals={"tensors": len(changes)})


def tensor_answer(run: Seen, name: str, rows: Sequence[TensorAtStep]) -> dict[str, Any]:
    """Return the statistics of a tensor over the steps, evenly spread; of a scalar, its values."""
    chosen = thinned(list(rows), MOST_STEPS)
    table: list[list[float | str | None]] = []
    for row in chosen:
        seen = row.summary
        if seen is None:
            table.append([row.step, None, None, None, None, None])
        elif row.mode is not None:
            table.append([row.step, _number(seen.mean)])
        else:
            statistics = ("rms", "mean", "min", "max", "non_finite")
            table.append([row.step, *(_number(seen.of(statistic)) for statistic in statistics)])
    is_scalar = bool(rows) and all(row.mode is not None for row in rows)
    columns = ["step", "value"] if is_scalar else ["step", "rms", "mean", "min", "max", "non_finite"]
    answer = fitted(
        {"note": NOTE, "run": marked(run.name), "tensor": marked(name), "columns": columns, "rows": table},
        ["rows"],
    )
    if len(answer["rows"]) < len(rows):
        answer["cut"] = [f"rows: {len(answer['rows'])} of {len(rows)}, evenly spread"]
    return answer


def comparison_answer(
    base: Seen, other: Seen, found: Comparison, problems: Sequence[Sequence[Issue]]
) -> dict[str, Any]:
    """Return where two runs diverge, and how their configurations and problems differ."""
    first = found.first or (found.differences[0] if found.differences else None)
    answer = {
        "note": NOTE,
        "runs": [marked(base.name), marked(other.name)],
        "same": found.is_same,
        "steps_in_both": found.steps,
        "configuration": [
            {
                "name": marked(difference.name, _SHORT),
                "values": all_marked((difference.first, difference.other), _SHORT),
            }
            for difference in found.config
        ],
        "first_difference": None
        if first is None
        else {"step": first.step, "tensor": marked(first.tensor, _SHORT), "why": marked(first.why)},
        "losses": [_loss(loss) for loss in found.losses],
        "problems": [
            [{"cause": _cause(issue.cause), "since": issue.since} for issue in issues[:MOST_PROBLEMS]]
            for issues in problems
        ],
        "collections": [
            {"name": marked(name, _SHORT), "since": part.first_step, "different": len(part.tensors_different)}
            for name, part in found.collections.items()
            if part.different
        ],
    }
    return fitted(answer, ["collections", "configuration"])


def rule_answer(run: Seen, found: Diagnosis) -> dict[str, Any]:
    """Return the result of one rule on a run."""
    (result,) = found.results
    findings = [
        {"step": step.step, "what": marked(finding.get("message") or "the condition is met")}
        for step in result.found[:MOST_STEPS]
        for finding in step.findings[:1]
    ]
    answer = {
        "note": NOTE,
        "run": marked(run.name),
        "rule": _rule(result.name),
        "verdict": "rule failed" if result.error else verdict_of(found),
        "result": marked(result.summary()),
        "found_at": len(result.steps_found),
        "evaluated": result.looked,
        "findings": findings,
        "problems": [problem_answer(issue) for issue in found.issues],
    }
    return fitted(answer, ["findings", "problems"], essential="problems")


def attached_answer(run: Seen, rules: Sequence[RuleConfiguration]) -> dict[str, Any]:
    """Return the rules of a run after one was attached."""
    names = [_rule(rule.name) for rule in rules]
    return fitted({"note": NOTE, "run": marked(run.name), "rules": names}, ["rules"])


def stop_answer(run: Seen, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return that a stop was requested."""
    return {
        "note": NOTE,
        "run": marked(run.name),
        "stop": "requested; the training stops at its next saved step",
        "reason": marked(request.get("reason")),
    }


def error_answer(message: str) -> dict[str, Any]:
    """Return why a call failed."""
    return {"note": NOTE, "error": marked(message, 400)}


def _changes(trial: Trial, step: int) -> list[dict[str, Any]]:
    changes = changed_tensors(trial, window_at(trial, step))
    return [{**change.to_dict(), "tensor": marked(change.tensor, _SHORT)} for change in changes]


def _next(issues: Sequence[Issue]) -> list[str]:
    if not issues:
        return []
    issue = issues[0]
    found = [f"around(step={issue.since}) shows what changed there"]
    if issue.where:
        found.append("tensor_statistics of a place under `where` shows it over the steps")
    return found


def _cause(cause: str) -> str:
    return cause if cause in CAUSES else marked(cause, _SHORT)


def _rule(name: str) -> str:
    return name if name in every_rule() else marked(name, _SHORT)


def _title(problem: Issue | Symptom) -> str:
    title = title_of(problem)
    return title if problem.cause in CAUSES and not problem.title else marked(title)


def _loss(loss: TrainingLoss | None) -> dict[str, Any] | None:
    if loss is None:
        return None
    return {
        "name": marked(loss.name, _SHORT),
        "first": _number(float(loss.values[0])),
        "last": _number(loss.last),
        "last_step": loss.last_step,
        "lowest": _number(loss.best),
        "lowest_step": loss.best_step,
    }


def _number(value: float | None) -> float | str | None:
    """Return the number with few digits; one that is not finite, as a word."""
    if value is None:
        return None
    known = as_json_number(value)
    return str(value) if known is None else float(f"{known:.4g}")
