"""What verdicts are worth: pure arithmetic over alarms and what is known of the programs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.verdicts.cases import Fault, Program
from bench.verdicts.judging import Alarm, Judged

NONE = "nothing"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one run of one program or fault."""

    case: Program | Fault
    kind: str
    seed: int
    judged: Judged

    @property
    def half(self) -> str:
        return "held out" if self.case.held_out else "tuning"

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return self.judged.alarms

    @property
    def is_false(self) -> bool:
        """Whether a healthy training drew an alarm."""
        return self.kind != "faulty" and bool(self.alarms)

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
    return alarm.cause in fault.causes and any(
        re.search(fault.place, place) for place in alarm.places
    )


def visible_steps(fault: Fault, steps: Sequence[tuple[int, str, int]]) -> tuple[int, int]:
    """From the step at which the fault began to the first saved one at which it can be seen.

    Without such a saved step, no step is right.
    """
    before = [
        step for step, mode, number in steps if number < fault.onset and mode == fault.visible_in
    ]
    visible = [
        step
        for step, mode, number in steps
        if number >= fault.visible_from and mode == fault.visible_in
    ]
    return max(before, default=-1) + 1, min(visible, default=-1)


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    count: int
    total: int

    @classmethod
    def of(cls, answers: Iterable[bool]) -> Share:
        given = list(answers)
        return cls(sum(given), len(given))

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
class Scores:
    """The figures of a set of verdicts."""

    verdicts: tuple[Verdict, ...]

    def of_half(self, half: str) -> Scores:
        return Scores(tuple(verdict for verdict in self.verdicts if verdict.half == half))

    def of_kind(self, kind: str) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.kind == kind)

    @property
    def false_alarms(self) -> Share:
        """The healthy runs that drew an alarm."""
        return Share.of(verdict.is_false for verdict in self.of_kind("healthy"))

    @property
    def twins(self) -> Share:
        """The healthy twins that drew an alarm."""
        return Share.of(verdict.is_false for verdict in self.of_kind("twin"))

    @property
    def found(self) -> Share:
        return Share.of(verdict.is_found for verdict in self.of_kind("faulty"))

    @property
    def named_right(self) -> Share:
        return Share.of(bool(verdict.right) for verdict in self.of_kind("faulty"))

    @property
    def prompt(self) -> Share:
        return Share.of(verdict.is_prompt for verdict in self.of_kind("faulty"))

    @property
    def blamed(self) -> Counter[tuple[str, str]]:
        """How often each rule raised a false alarm, by cause."""
        return Counter(
            (alarm.rule, alarm.cause)
            for verdict in self.verdicts
            if verdict.kind != "faulty"
            for alarm in verdict.alarms
        )

    @property
    def confusion(self) -> Counter[tuple[str, str]]:
        """How often each cause was named for each: (true cause, named cause)."""
        return Counter(
            (verdict.case.cause, verdict.named)
            for verdict in self.of_kind("faulty")
            if isinstance(verdict.case, Fault)
        )

    @property
    def causes(self) -> list[str]:
        return sorted({each.case.cause for each in self.verdicts if isinstance(each.case, Fault)})

    def of_cause(self, cause: str) -> Scores:
        return Scores(
            tuple(
                verdict
                for verdict in self.verdicts
                if isinstance(verdict.case, Fault) and verdict.case.cause == cause
            )
        )
