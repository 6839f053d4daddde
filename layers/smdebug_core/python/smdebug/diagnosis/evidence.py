"""The findings of one rule over a run, grouped by their cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_REASONS = 3
MOST_ADVICE = 3
_MOST_PLACES = 1000


@dataclass(frozen=True)
class Evidence:
    """One cause as one rule found it: what, where, since when, and by which numbers."""

    cause: str
    """"" if the rule names none."""
    rule: str
    what: str
    since: int
    last: int
    steps: int = 1
    """The number of steps with such findings; 0 if it is unknown."""
    found: int | None = None
    """The first step that had such a finding. A trend is found later than `since`, where it began."""
    title: str = ""
    """The headline for this case; "" for that of the cause."""
    reasons: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Tensors, or other named things, in the order in which they were found."""
    workers: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    docs: str = ""


def evidence_of(
    rule: str,
    found: Iterable[tuple[int, Sequence[Mapping[str, Any]]]],
    *,
    advice: Mapping[str, Sequence[str]] | None = None,
    docs: str = "",
    cause: str = "",
) -> list[Evidence]:
    """Return the evidence in a rule's findings, one for each cause, in the order of their onset.

    `found` has the findings of each step, worst first, as `Finding.to_dict` returns them; `cause` is that
    of findings that name none.
    """
    groups: dict[str, _Group] = {}
    for step, findings in found:
        for finding in findings or ({},):
            named = str(finding.get("cause") or cause)
            groups.setdefault(named, _Group(named)).add(step, finding)
    known = advice or {}
    collected = [
        group.evidence(rule, tuple(known.get(group.cause) or known.get("") or ()), docs)
        for group in groups.values()
    ]
    return sorted(collected, key=lambda evidence: evidence.since)


class _Group:
    """The findings of one cause, while they are collected."""

    def __init__(self, cause: str):
        self.cause = cause
        self.steps: dict[int, None] = {}
        self.first: list[Mapping[str, Any]] = []  # of the first step
        self.onsets: set[int] = set()
        self.places: dict[str, None] = {}
        self.workers: dict[str, None] = {}

    def add(self, step: int, finding: Mapping[str, Any]) -> None:
        self.steps[step] = None
        if len(self.steps) == 1:
            self.first.append(finding)
        self.onsets.add(onset_of(finding, step))
        if len(self.places) < _MOST_PLACES and finding.get("tensor"):
            self.places[str(finding["tensor"])] = None
        if finding.get("worker"):
            self.workers[str(finding["worker"])] = None

    def evidence(self, rule: str, advice: tuple[str, ...], docs: str) -> Evidence:
        what = message_of(self.first[0])
        # Numbers that the first sentence does not have already.
        numbers = _unlike(map(reasons_of, self.first))
        rest = [message_of(finding) for finding in self.first[1:] if _adds(finding, self.first[0])]
        reasons = [text for text in dict.fromkeys((*numbers, *rest)) if text not in what]
        own = dict.fromkeys(text for finding in self.first for text in texts_of(finding, "advice"))
        return Evidence(
            cause=self.cause,
            rule=rule,
            what=what,
            since=min(self.onsets),
            last=max(self.steps),
            steps=len(self.steps),
            found=min(self.steps),
            title=str(self.first[0].get("title") or ""),
            reasons=tuple(reasons[:MOST_REASONS]),
            places=tuple(self.places),
            workers=tuple(sorted(self.workers)),
            advice=(tuple(own) or advice)[:MOST_ADVICE],
            docs=docs,
        )


def onset_of(finding: Mapping[str, Any], step: int) -> int:
    """Return the first step at which the finding was visible, as far as it knows."""
    details = finding.get("details")
    earlier = details.get("found_since") if isinstance(details, Mapping) else None
    for since in (finding.get("since"), earlier):
        if type(since) is int:
            return min(since, step)
    return step


def message_of(finding: Mapping[str, Any]) -> str:
    return str(finding.get("message") or finding.get("tensor") or "the condition is met")


def _adds(finding: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Whether the finding's sentence says more than its numbers, beside those of the first finding."""
    return not finding.get("why") or finding.get("title") != first.get("title")


def _unlike(reasons: Iterable[Iterable[str]]) -> list[str]:
    """Return the reasons of findings without those that an earlier one gives, too, with other numbers."""
    found: list[str] = []
    known: set[str] = set()
    for of_finding in reasons:
        new = {text: _without_numbers(text) for text in of_finding}
        found += [text for text, form in new.items() if form not in known]
        known.update(new.values())
    return found


def _without_numbers(text: str) -> str:
    return " ".join("#" if any(map(str.isdigit, word)) else word for word in text.split())


def texts_of(finding: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the sentences of `why` or `advice` of a finding."""
    given = finding.get(field)
    return tuple(map(str, given)) if isinstance(given, list | tuple) else ()


def reasons_of(finding: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the numbers that convince: those that the finding names, or else its value and limit."""
    given = texts_of(finding, "why")
    if given:
        return given
    numbers = _numbers_of(finding)
    return (numbers,) if numbers else ()


def _numbers_of(finding: Mapping[str, Any]) -> str:
    value, limit = finding.get("value"), finding.get("threshold")
    message = message_of(finding)
    is_number = isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity")
    if not is_number or isinstance(value, bool) or _short(value) in message:
        return ""
    place = f"{finding['tensor']}: " if finding.get("tensor") else ""
    text = place + measured(str(finding.get("statistic") or "value"), _short(value))
    return text if limit is None else f"{text} (limit {_short(limit)})"


def measured(statistic: str, value: str) -> str:
    """Return the value of a statistic as one says it: `3 times the first loss`, `rms 0.2`."""
    if statistic.startswith("times "):
        return f"{value} {statistic}"
    quantity, is_share, whole = statistic.partition(", as a share of ")
    if is_share:
        return f"{quantity} is {value} of {whole}"
    quantity, is_percent, _ = statistic.partition(" in percent")
    return f"{quantity} {value} %" if is_percent else f"{statistic} {value}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:80]
