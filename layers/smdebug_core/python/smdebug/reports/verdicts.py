"""What each rule says of a run, wherever it was asked: on this machine, or in the deployed application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.runs.evaluating import RuleResult
    from smdebug.service.findings import FindingEvent
    from smdebug.service.run_status import RuleStatusOf

MOST_FINDINGS = 40  # that are told of one rule
MOST_MARKS = 400  # steps of one rule that are marked in curves


@dataclass(frozen=True)
class Told:
    """One finding in plain words."""

    step: int
    text: str
    count: int = 1  # how many there were at this step; this is the worst
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """One rule on one run."""

    name: str
    rule: str
    status: str
    sentence: str
    parameters: Mapping[str, Any]
    steps_found: tuple[int, ...] = ()
    found: tuple[Told, ...] = ()
    asks: str = ""  # what the rule looks for
    seconds: float | None = None
    has_seen: bool = True  # False: there was nothing to look at

    @property
    def is_bad(self) -> bool:
        return self.status in ("IssuesFound", "Error")

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors in its findings, the most frequent first."""
        counts: dict[str, int] = {}
        for one in self.found:
            for name in one.tensors:
                counts[name] = counts.get(name, 0) + 1
        return tuple(sorted(counts, key=lambda name: -counts[name]))

    @property
    def telling_steps(self) -> tuple[int, ...]:
        """Steps that a picture must not leave out: the first and the last, and some between."""
        found = self.steps_found
        if len(found) <= 20:
            return found
        return tuple(found[round(at * (len(found) - 1) / 19)] for at in range(20))


def of_results(results: Iterable[RuleResult]) -> tuple[Verdict, ...]:
    """The verdicts of rules that were asked here."""
    return tuple(_of_result(one) for one in results)


def _of_result(result: RuleResult) -> Verdict:
    chosen = _spread_out(result.found, MOST_FINDINGS)
    return Verdict(
        name=result.name,
        rule=result.rule,
        status=result.status.value,
        sentence=result.summary(),
        parameters=dict(result.parameters),
        steps_found=result.steps_found,
        found=tuple(
            Told(
                step=one.step,
                text=str(one.findings[0]["message"]) if one.findings else "the condition is met",
                count=max(1, one.count),
                tensors=_tensors(one.findings),
            )
            for one in chosen
        ),
        asks=_asks(result.rule),
        seconds=result.seconds,
        has_seen=result.has_seen,
    )


def of_service(
    statuses: Iterable[RuleStatusOf], findings: Iterable[FindingEvent]
) -> tuple[Verdict, ...]:
    """The verdicts of the deployed application."""
    by_rule: dict[str, list[FindingEvent]] = {}
    for finding in findings:
        by_rule.setdefault(finding.name, []).append(finding)
    return tuple(_of_status(one, by_rule.get(one.name, [])) for one in statuses)


def _of_status(status: RuleStatusOf, findings: Sequence[FindingEvent]) -> Verdict:
    steps = tuple(dict.fromkeys(one.step for one in findings))
    chosen = _spread_out(findings, MOST_FINDINGS)
    if steps:
        when = f"at step {steps[0]}" if len(steps) == 1 else f"from step {steps[0]} to {steps[-1]}"
        sentence = f"{status.name} found something {when}."
    elif status.status.value == "Error":
        sentence = f"{status.name} failed: {status.reason}"
    else:
        through = status.evaluated_through
        until = "" if through is None else f" up to step {through}"
        sentence = f"{status.name} found nothing{until}."
    return Verdict(
        name=status.name,
        rule=status.rule,
        status=status.status.value,
        sentence=sentence,
        parameters=dict(status.parameters),
        steps_found=steps,
        found=tuple(
            Told(
                step=one.step,
                text=str((one.worst[0].get("message") if one.worst else "") or one.reason),
                count=max(1, one.count),
                tensors=_tensors(one.worst),
            )
            for one in chosen
        ),
        asks=_asks(status.rule),
    )


def latency_of(findings: Iterable[FindingEvent]) -> dict[str, tuple[float, float]]:
    """How long each leg from saving to publishing took, in seconds: the median, and p99."""
    legs: dict[str, list[float]] = {}
    for finding in findings:
        times = finding.detail.get("times")
        if not isinstance(times, Mapping):
            continue
        stations = [(name, _moment(times.get(name))) for name in _STATIONS]
        known = [(name, moment) for name, moment in stations if moment is not None]
        for (before, began), (after, ended) in pairwise(known):
            legs.setdefault(f"{before} → {after}", []).append((ended - began).total_seconds())
    return {leg: (_quantile(seen, 0.5), _quantile(seen, 0.99)) for leg, seen in legs.items()}


_STATIONS = ("saved", "uploaded", "indexed", "evaluated", "published")


def _moment(told: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(told).replace("Z", "+00:00"))
    except ValueError:
        return None


def _quantile(numbers: Sequence[float], share: float) -> float:
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _tensors(findings: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(one["tensor"]) for one in findings if one.get("tensor")))


def _asks(rule: str) -> str:
    from smdebug.exceptions import SMDebugError
    from smdebug.rules.generic import find_rule

    try:
        return str(find_rule(rule).sentence)
    except SMDebugError:
        return ""


def _spread_out(found: Sequence[Any], most: int) -> list[Any]:
    """The first half of what is told from the beginning, the rest evenly from what follows."""
    if len(found) <= most:
        return list(found)
    early, rest = list(found[: most // 2]), found[most // 2 :]
    count = most - len(early)
    return [*early, *(rest[round(at * (len(rest) - 1) / (count - 1))] for at in range(count))]
