"""The verdict of each rule on a run, whether evaluated on this machine or in a deployment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.rules.rule_sets import documentation_of

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule
    from smdebug.runs.evaluation.evaluating import RuleResult
    from smdebug.service.findings import FindingEvent
    from smdebug.service.run_status import RuleStatusOf

MOST_FINDINGS = 40  # listed of one rule
MOST_LINES = 2000  # of the log of one rule


@dataclass(frozen=True)
class FindingText:
    """The worst finding of a rule at one step, in words."""

    step: int
    text: str
    count: int = 1  # the number of findings at this step
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reported:
    """One finding as the log lists it."""

    step: int
    mode: str | None
    message: str
    tensor: str


@dataclass(frozen=True)
class Verdict:
    """One rule on one run."""

    name: str
    rule: str
    status: str
    sentence: str
    parameters: Mapping[str, Any]
    steps_found: tuple[int, ...] = ()
    found: tuple[FindingText, ...] = ()
    reported: tuple[Reported, ...] = ()
    number_reported: int = 0
    detects: str = ""  # the rule's own description
    seconds: float | None = None
    has_seen: bool = True  # False: no step had data for the rule
    not_checked: str = ""  # what the run lacks for the rule
    evidence: tuple[Evidence, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether it has findings."""
        return self.status == "IssuesFound"

    @property
    def has_failed(self) -> bool:
        """Whether the rule itself failed."""
        return self.status == "Error"

    @property
    def kind(self) -> str:
        """The class of its card: bad, failed, good or none."""
        if self.is_bad or self.has_failed:
            return "bad" if self.is_bad else "failed"
        return "good" if self.has_seen else "none"

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors in its findings, the most frequent first."""
        counts: dict[str, int] = {}
        for finding in self.found:
            for name in finding.tensors:
                counts[name] = counts.get(name, 0) + 1
        return tuple(sorted(counts, key=lambda name: -counts[name]))

    @property
    def notable_steps(self) -> tuple[int, ...]:
        """Steps that a chart must include: the first and the last with findings, and some between."""
        found = self.steps_found
        if len(found) <= 20:
            return found
        return tuple(found[round(at * (len(found) - 1) / 19)] for at in range(20))


def of_results(results: Iterable[RuleResult]) -> tuple[Verdict, ...]:
    """Return the verdicts of rules that were evaluated on this machine."""
    return tuple(replace(of_result(result), evidence=tuple(result.evidence())) for result in results)


def of_result(result: RuleResult) -> Verdict:
    """Return the verdict of a rule without its evidence, from which problems are folded."""
    reported = [
        Reported(
            found.step,
            found.mode,
            str(finding.get("message") or "condition met"),
            str(finding.get("tensor") or ""),
        )
        for found in result.found
        for finding in (found.findings or ({},))
    ]
    return Verdict(
        name=result.name,
        rule=result.rule,
        status=result.status.value,
        sentence=result.summary(),
        parameters=dict(result.parameters),
        steps_found=result.steps_found,
        found=tuple(
            FindingText(
                step=found.step,
                text=str(found.findings[0]["message"]) if found.findings else "condition met",
                count=max(1, found.count),
                tensors=_tensors(found.findings),
            )
            for found in _spread_out(result.found, MOST_FINDINGS)
        ),
        reported=tuple(reported[:MOST_LINES]),
        number_reported=len(reported),
        detects=_description(result.rule),
        seconds=result.seconds,
        has_seen=result.has_seen,
        not_checked=result.not_checked,
    )


def of_service(statuses: Iterable[RuleStatusOf], findings: Iterable[FindingEvent]) -> tuple[Verdict, ...]:
    """Return the verdicts of a deployed debugger."""
    by_rule: dict[str, list[FindingEvent]] = {}
    for finding in findings:
        by_rule.setdefault(finding.name, []).append(finding)
    return tuple(_of_status(status, by_rule.get(status.name, [])) for status in statuses)


def _of_status(status: RuleStatusOf, findings: Sequence[FindingEvent]) -> Verdict:
    steps = tuple(dict.fromkeys(finding.step for finding in findings))
    reported = [
        Reported(
            found.step,
            None,
            str(worst.get("message") or found.reason),
            str(worst.get("tensor") or ""),
        )
        for found in findings
        for worst in (found.worst or ({},))
    ]
    return Verdict(
        name=status.name,
        rule=status.rule,
        status=status.status.value,
        sentence=_sentence(status, steps),
        parameters=dict(status.parameters),
        steps_found=steps,
        found=tuple(
            FindingText(
                step=found.step,
                text=str((found.worst[0].get("message") if found.worst else "") or found.reason),
                count=max(1, found.count),
                tensors=_tensors(found.worst),
            )
            for found in _spread_out(findings, MOST_FINDINGS)
        ),
        reported=tuple(reported[:MOST_LINES]),
        number_reported=len(reported),
        detects=_description(status.rule),
        has_seen=status.status.value != "Stopped" and (bool(steps) or status.last_good is not None),
        not_checked="" if status.last_good is not None else status.reason or "no step had data for it",
        evidence=tuple(_evidence(status, findings)),
    )


def _evidence(status: RuleStatusOf, findings: Sequence[FindingEvent]) -> Iterator[Evidence]:
    """Yield what the events hold; only the first step of an issue has one."""
    rule = _built_in(status.rule)
    for evidence in evidence_of(
        status.name,
        [(finding.step, finding.worst) for finding in findings],
        advice=rule.advice if rule else None,
        docs=documentation_of(status.rule) if rule else "",
        cause=rule.cause if rule else "",
    ):
        last = max(evidence.last, status.last_found or 0)
        yield replace(evidence, last=last, steps=1 if last == evidence.since else 0)


def _built_in(name: str) -> type[Rule] | None:
    from smdebug.exceptions import SMDebugError
    from smdebug.rules.generic import find_rule

    try:
        return find_rule(name).load()
    except SMDebugError:
        return None


def _sentence(status: RuleStatusOf, steps: Sequence[int]) -> str:
    if steps:
        when = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"
        return f"{status.name} detected a problem at {when}."
    if status.status.value == "Error":
        return f"{status.name} could not be evaluated: {status.reason}"
    if status.status.value == "Stopped":
        return f"{status.name} was stopped: {status.reason}"
    if status.last_good is None:
        return f"{status.name} has not checked anything: {status.reason or 'no step had data for it'}"
    through = status.evaluated_through
    return f"{status.name} passed{'' if through is None else f' up to step {through}'}."


def latency_of(findings: Iterable[FindingEvent]) -> dict[str, tuple[float, float]]:
    """Return the duration of each stage from saving to publishing, in seconds: the median and p99."""
    stages: dict[str, list[float]] = {}
    for finding in findings:
        times = finding.detail.get("times")
        if not isinstance(times, Mapping):
            continue
        moments = [(name, _moment(times.get(name))) for name in _STATIONS]
        known = [(name, moment) for name, moment in moments if moment is not None]
        for (before, began), (after, ended) in pairwise(known):
            stages.setdefault(f"{before} → {after}", []).append((ended - began).total_seconds())
    return {stage: (_quantile(seconds, 0.5), _quantile(seconds, 0.99)) for stage, seconds in stages.items()}


_STATIONS = ("saved", "uploaded", "indexed", "evaluated", "published")


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None


def _quantile(numbers: Sequence[float], share: float) -> float:
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _tensors(findings: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(finding["tensor"]) for finding in findings if finding.get("tensor")))


def _description(rule: str) -> str:
    from smdebug.exceptions import SMDebugError
    from smdebug.rules.generic import find_rule

    try:
        return str(find_rule(rule).sentence)
    except SMDebugError:
        return ""


def _spread_out(found: Sequence[Any], most: int) -> list[Any]:
    """At most `most` items: half of them the first ones, the others spread evenly over the rest."""
    if len(found) <= most:
        return list(found)
    early, rest = list(found[: most // 2]), found[most // 2 :]
    count = most - len(early)
    return [*early, *(rest[round(at * (len(rest) - 1) / (count - 1))] for at in range(count))]
