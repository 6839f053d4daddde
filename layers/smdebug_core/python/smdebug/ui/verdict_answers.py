"""The diagnosis of a run as the page shows it: problems, results of rules, their log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.diagnosis.wording import headline, parts, sentence
from smdebug.plain_text import escaped
from smdebug.runs.diagnosing import not_checked_in_words
from smdebug.runs.rule_results import RuleResult
from smdebug.ui.answer_types import IssueAnswer, LogAnswer, LogLine, RuleAnswer, VerdictAnswer
from smdebug.ui.reading import RunReader

MOST_LOG_LINES = 2000
_MOST_WHERE = 200


def verdict_of(reader: RunReader) -> VerdictAnswer:
    """Return the results of the rules and their log, as they are now or as they were kept."""
    if reader.following is None:
        kept: Any = {} if reader.kept is None else reader.kept.verdict
        return {"rules": [], "not_checked": [], "log": {"total": 0, "lines": []}, **kept}
    results = reader.following.results
    has_checked = reader.steps_checked > 0
    reasons = {result.name: result.not_checked for result in results if result.not_checked}
    return {
        "rules": [rule_answer(result, has_checked) for result in results],
        "not_checked": not_checked_in_words(reasons) if reader.has_ended else [],
        "log": log_answer(results),
    }


def issue_answer(issue: Issue) -> IssueAnswer:
    """Return a problem with its parts in words."""
    return {
        "rules": [escaped(rule) for rule in issue.rules],
        "since": issue.since,
        "headline": escaped(headline(issue)),
        "sentence": escaped(sentence(issue.what)),
        "where": [escaped(place) for place in issue.where[:_MOST_WHERE]],
        "parts": [[part.label, [escaped(text) for text in part.texts]] for part in parts(issue)],
    }


def rule_answer(result: RuleResult, has_checked: bool) -> RuleAnswer:
    """Return the result of a rule so far."""
    state = "waiting"
    if result.error:
        state = "failed"
    elif result.has_found:
        state = "found"
    elif result.has_seen:
        state = "passed"
    elif has_checked:
        state = "not checked"
    return {
        "name": escaped(result.name),
        "rule": escaped(result.rule),
        "state": state,
        "sentence": escaped(result.summary()),
        "parameters": _escaped(dict(result.parameters)),
        "steps_found": list(result.steps_found[:1000]),
    }


def log_answer(results: Iterable[RuleResult]) -> LogAnswer:
    """Return what the rules reported, in the order of steps."""
    lines: list[LogLine] = [
        {
            "step": found.step,
            "mode": found.mode,
            "rule": escaped(result.name),
            "message": escaped(str(finding.get("message") or "condition met")),
            "tensor": escaped(str(finding.get("tensor") or "")),
        }
        for result in results
        for found in result.found
        for finding in (found.findings or ({},))
    ]
    lines.sort(key=lambda line: line["step"])
    return {"total": len(lines), "lines": lines[:MOST_LOG_LINES]}


def _escaped(value: Any) -> Any:
    """Return JSON data with control characters escaped, and numbers that JSON can hold."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {escaped(str(key)): _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value if value is None or isinstance(value, bool | int) else escaped(str(value))
