"""A report as plain HTML: the verdicts in words, which need no script.

Readers without JavaScript have it, previews, and searches in the file. The page replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from smdebug.amounts import counted
from smdebug.ui.answer_types import AboutAnswer, IssueAnswer, RuleAnswer, RunAnswer

_MARKS = {"found": "✗", "failed": "!", "passed": "✓"}
_ORDER = ("found", "failed", "passed", "not checked", "waiting")


def headline(rules: Sequence[RuleAnswer]) -> str:
    """Return all verdicts in a few words."""
    counts = {state: sum(rule["state"] == state for rule in rules) for state in _ORDER}
    if counts["found"]:
        return f"{counts['found']} of {counted(len(rules), 'rule')} detected a problem"
    if counts["failed"]:
        return f"{counted(counts['failed'], 'rule')} could not be evaluated"
    if counts["passed"]:
        rest = len(rules) - counts["passed"]
        return f"{counted(counts['passed'], 'rule')} passed" + (f", {rest} not checked" if rest else "")
    return "nothing was checked" if rules else "no rules evaluated"


def plain_text(run: RunAnswer, about: AboutAnswer) -> str:
    """Return the heading, the problems, the verdict of each rule and the notes as HTML."""
    parts = [
        f"<h1>{escape(run['name'])}</h1>",
        f"<p>{escape(run['path'])}: {escape(run['state'])}</p>",
        *_pairs(about["facts"]),
        f"<h2>{escape(headline(run['rules']).capitalize())}</h2>",
    ]
    for issue in run["issues"]:
        parts += _issue(issue)
    parts += _rules(run["rules"])
    parts += _list([*run["notes"], *(f"{place}: {why}" for place, why in run["damaged"])])
    return "\n".join(parts)


def _issue(issue: IssueAnswer) -> Iterator[str]:
    yield f"<h3>✗ {escape(issue['headline'])}</h3><p>{escape(issue['sentence'])}</p>"
    yield from _pairs((label, "; ".join(texts)) for label, texts in issue["parts"])


def _rules(rules: Sequence[RuleAnswer]) -> Iterator[str]:
    ordered = sorted(rules, key=lambda rule: _ORDER.index(rule["state"]))
    yield from _list(f"{_MARKS.get(rule['state'], '–')} {rule['sentence']}" for rule in ordered)


def _pairs(pairs: Iterable[Sequence[str]]) -> Iterator[str]:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    if rows:
        yield f"<dl>{rows}</dl>"


def _list(texts: Iterable[str]) -> Iterator[str]:
    rows = "".join(f"<li>{escape(text)}</li>" for text in texts)
    if rows:
        yield f"<ul>{rows}</ul>"
