"""The scores of verdicts: pure arithmetic over alarms and the known faults of the programs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from corpus.cases import Fault, Program
from corpus.measuring.judging import Alarm, Judged

NONE = "nothing"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one run of one program or fault."""

    case: Program | Fault
    kind: str
    seed: int
    judged: Judged
    recorded: str = ""
    """The commit whose code recorded the run."""

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return self.judged.alarms

    @property
    def is_found(self) -> bool:
        """Whether anything was reported of a faulty training."""
        return self.kind == "faulty" and bool(self.alarms)

    @cached_property
    def right(self) -> tuple[Alarm, ...]:
        """The alarms that name the fault's cause and its place."""
        if self.kind != "faulty" or not isinstance(self.case, Fault):
            return ()
        return tuple(alarm for alarm in self.alarms if is_right(alarm, self.case))

    @property
    def is_prompt(self) -> bool:
        """Whether a right alarm names the first saved step at which the fault can be seen."""
        if not isinstance(self.case, Fault):
            return False
        first, last = visible_steps(self.case, self.judged.steps)
        return any(first <= alarm.since <= last for alarm in self.right)

    @property
    def named(self) -> str:
        """The cause that is named: the right one, if it is among them, or else the first."""
        if self.right:
            return self.right[0].cause
        return (self.alarms[0].cause or self.alarms[0].rule) if self.alarms else NONE


def is_right(alarm: Alarm, fault: Fault) -> bool:
    """Whether the alarm names the fault's cause, and a place that its pattern matches."""
    return alarm.cause in fault.causes and any(re.search(fault.place, place) for place in alarm.places)


def visible_steps(fault: Fault, steps: Sequence[tuple[int, str, int]]) -> tuple[int, int]:
    """From the step at which the fault began to the first saved one at which it can be seen.

    Without such a saved step, no step is right. Hooks that know no modes, as XGBoost's, have one for all.
    """
    modes = (fault.visible_in, "GLOBAL")
    numbers = [(step, number) for step, mode, number in steps if mode in modes]
    before = [step for step, number in numbers if number < fault.onset]
    visible = [step for step, number in numbers if number >= fault.visible_from]
    return max(before, default=-1) + 1, min(visible, default=-1)


@dataclass(frozen=True)
class Share:
    """A number out of a total."""

    count: int
    total: int

    def __str__(self) -> str:
        if not self.total:
            return "-"
        return f"{self.count}/{self.total} ({100 * self.count / self.total:.0f} %)"

    @property
    def upper_bound(self) -> float:
        """The rate that is not exceeded with 95 % confidence (Clopper-Pearson, one-sided)."""
        if self.count >= self.total:
            return 1.0
        low, high = self.count / self.total, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            if _at_most(self.count, self.total, middle) > 0.05:
                low = middle
            else:
                high = middle
        return high


def _at_most(count: int, total: int, rate: float) -> float:
    """The probability of at most `count` of `total` at this rate."""
    if rate <= 0:
        return 1.0
    if rate >= 1:
        return float(count >= total)
    terms = (
        math.lgamma(total + 1)
        - math.lgamma(k + 1)
        - math.lgamma(total - k + 1)
        + k * math.log(rate)
        + (total - k) * math.log1p(-rate)
        for k in range(count + 1)
    )
    return sum(math.exp(term) for term in terms)


@dataclass(frozen=True)
class Tally:
    """The results of all runs of one program, of one fault, or of its twin."""

    name: str
    kind: str
    framework: str
    half: str
    runs: int
    cause: str = ""
    """The true cause, if it is a fault or its twin."""
    source: str = ""
    alarmed: int = 0
    right: int = 0
    prompt: int = 0
    named: Mapping[str, int] = field(default_factory=dict)
    """How often which cause was named; of a healthy training, in how many runs each rule raised an alarm."""
    recorded: str = ""
    """The commit whose code recorded the runs."""
    judged: str = ""
    """The commit whose rules judged them."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: value for name, value in asdict(self).items() if value not in ("", 0, {})}


def tallies(verdicts: Iterable[Verdict]) -> list[Tally]:
    """Count the verdicts of each training."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.case.name, verdict.kind), []).append(verdict)
    return [_tally(group) for group in groups.values()]


def _tally(verdicts: Sequence[Verdict]) -> Tally:
    case, kind = verdicts[0].case, verdicts[0].kind
    if kind == "faulty":
        named = Counter(verdict.named for verdict in verdicts)
    else:
        named = Counter(
            f"{alarm.rule}: {alarm.cause or 'no cause'}" for verdict in verdicts for alarm in verdict.alarms
        )
    return Tally(
        name=case.name,
        kind=kind,
        framework=case.framework,
        half="held out" if case.held_out else "tuning",
        runs=len(verdicts),
        cause=case.cause if isinstance(case, Fault) else "",
        source=case.source if isinstance(case, Fault) else "",
        alarmed=sum(bool(verdict.alarms) for verdict in verdicts),
        right=sum(bool(verdict.right) for verdict in verdicts),
        prompt=sum(verdict.is_prompt for verdict in verdicts),
        named=dict(named),
        recorded=verdicts[0].recorded,
    )


@dataclass(frozen=True)
class Scores:
    """The figures of a set of trainings."""

    tallies: tuple[Tally, ...]

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Scores:
        """The figures of these verdicts."""
        return cls(tuple(tallies(verdicts)))

    def where(self, **wanted: str) -> Scores:
        """Those whose attributes have these values."""
        return Scores(
            tuple(
                tally
                for tally in self.tallies
                if all(getattr(tally, name) == value for name, value in wanted.items())
            )
        )

    @property
    def false_alarms(self) -> Share:
        """The healthy runs that drew an alarm."""
        return self.share("alarmed", "healthy")

    @property
    def twins(self) -> Share:
        """The healthy twins that drew an alarm."""
        return self.share("alarmed", "twin")

    @property
    def found(self) -> Share:
        """The faulty runs of which anything was reported."""
        return self.share("alarmed", "faulty")

    @property
    def named_right(self) -> Share:
        """The faulty runs whose cause and place were named."""
        return self.share("right", "faulty")

    @property
    def prompt(self) -> Share:
        """Those of which the first visible step was named as well."""
        return self.share("prompt", "faulty")

    def share(self, count: str, kind: str) -> Share:
        """The runs of a kind that count, of all of that kind."""
        chosen = self.where(kind=kind).tallies
        return Share(sum(getattr(tally, count) for tally in chosen), sum(tally.runs for tally in chosen))

    @property
    def blamed(self) -> Counter[str]:
        """How often each rule raised a false alarm, with the cause that it named."""
        counted: Counter[str] = Counter()
        for tally in self.tallies:
            if tally.kind != "faulty":
                counted.update(tally.named)
        return counted

    @property
    def confusion(self) -> Counter[tuple[str, str]]:
        """How often each cause was named for each: (true cause, named cause)."""
        counted: Counter[tuple[str, str]] = Counter()
        for tally in self.where(kind="faulty").tallies:
            for named, runs in tally.named.items():
                counted[tally.cause, named] += runs
        return counted

    @property
    def causes(self) -> list[str]:
        """The true causes."""
        return sorted({tally.cause for tally in self.tallies if tally.cause})
