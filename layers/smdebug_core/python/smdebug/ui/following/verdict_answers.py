"""The diagnosis of a run as the page shows it: problems, results of rules, their log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.diagnosis.wording import headline, parts, sentence
from smdebug.plain_text import escaped
from smdebug.runs.verdicts import Verdict
from smdebug.ui.answer_types import IssueAnswer, LogAnswer, LogLine, RuleAnswer, VerdictAnswer

MOST_LOG_LINES = 2000
_MOST_WHERE = 200
_MOST_STEPS = 1000


NO_VERDICT: VerdictAnswer = {"rules": [], "log": {"total": 0, "lines": []}}


def verdict_answer(verdicts: Sequence[Verdict], *, has_checked: bool) -> VerdictAnswer:
    """Return the results of the rules and their log."""
    return {
        "rules": [rule_answer(verdict, has_checked) for verdict in verdicts],
        "log": log_answer(verdicts),
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


def rule_answer(verdict: Verdict, has_checked: bool) -> RuleAnswer:
    """Return the result of a rule so far."""
    states = {"bad": "found", "failed": "failed", "good": "passed"}
    state = states.get(verdict.kind, "not checked" if has_checked else "waiting")
    return {
        "name": escaped(verdict.name),
        "rule": escaped(verdict.rule),
        "state": state,
        "sentence": escaped(verdict.sentence),
        "detects": escaped(verdict.detects),
        "seconds": verdict.seconds or None,
        "parameters": _escaped(dict(verdict.parameters)),
        "steps_found": list(verdict.steps_found[:_MOST_STEPS]),
        "found": [
            {
                "step": found.step,
                "text": escaped(found.text),
                "count": found.count,
                "tensors": [escaped(name) for name in found.tensors],
            }
            for found in verdict.found
        ],
    }


def log_answer(verdicts: Iterable[Verdict]) -> LogAnswer:
    """Return what the rules reported, in the order of steps."""
    lines: list[LogLine] = []
    total = 0
    for verdict in verdicts:
        total += verdict.number_reported
        lines += [
            {
                "step": line.step,
                "mode": line.mode,
                "rule": escaped(verdict.name),
                "message": escaped(line.message),
                "tensor": escaped(line.tensor),
            }
            for line in verdict.reported
        ]
    lines.sort(key=lambda line: line["step"])
    return {"total": total, "lines": lines[:MOST_LOG_LINES]}


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
