"""The distribution of a rule's number as SVG: failing runs above the axis, healthy ones below it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from smdebug.amounts import counted, number
from smdebug.backtesting.thresholds import Distribution

_WIDTH, _LEFT, _RIGHT = 1000, 60, 20
_TOP, _MIDDLE, _BOTTOM = 24, 130, 236
_SHARES_TOP, _SHARES_BOTTOM, _HEIGHT = 290, 400, 440
_BINS = 50
_FAR_APART = 50.0
_MOST_MARKS = 7
_LINES = {"failing": "solid", "healthy": "dashed", "unlabelled": "dotted"}


@dataclass(frozen=True)
class Scale:
    """Places of numbers on the axis, logarithmic if they are positive and far apart."""

    low: float
    high: float
    is_log: bool
    left: int = _LEFT
    width: int = _WIDTH - _LEFT - _RIGHT

    @classmethod
    def of(cls, values: Iterable[float]) -> Scale:
        """Return the scale that has room for all of these numbers."""
        known = sorted(values)
        is_log = known[0] > 0 and known[-1] / known[0] > _FAR_APART
        low, high = (math.log(known[0]), math.log(known[-1])) if is_log else (known[0], known[-1])
        size = max(abs(low), abs(high))
        margin = 0.02 * (high - low) if high - low > 1e-9 * size else 0.05 * size or 1.0
        low, high = low - margin, high + margin
        if is_log:
            low, high = max(low, math.log(sys.float_info.min)), min(high, math.log(sys.float_info.max))
        return cls(low, high, is_log)

    def share(self, value: float) -> float:
        """Return where the number is, from 0 to 1."""
        if self.is_log:
            value = math.log(value) if value > 0 else self.low
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def x(self, value: float) -> float:
        return self.left + self.width * self.share(value)

    def value(self, share: float) -> float:
        at = self.low + share * (self.high - self.low)
        return math.exp(at) if self.is_log else at

    def marks(self) -> list[float]:
        """Return round numbers on the axis, a few of them."""
        low, high = self.value(0), self.value(1)
        if not self.is_log:
            return next(marks for marks in _multiples(low, high) if len(marks) <= _MOST_MARKS)
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        every = -(-len(decades) // _MOST_MARKS)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            marks = [digit * 10.0**decade for decade in decades for digit in digits]
            marks = [mark for mark in marks if low <= mark <= high]
            if len(marks) <= _MOST_MARKS:
                return marks
        return marks[::every]


def _multiples(low: float, high: float) -> Iterator[list[float]]:
    """Yield the multiples of round distances between two numbers, those of wider distances later."""
    decade = math.floor(math.log10((high - low) / _MOST_MARKS))
    for exponent in range(decade, decade + 3):
        for digit in (1, 2, 5):
            times, by = digit * 10 ** max(0, exponent), 10 ** max(0, -exponent)
            first, last = math.ceil(low * by / times), math.floor(high * by / times)
            yield [place * times / by for place in range(first, last + 1)]


def _told_apart(marks: Sequence[float]) -> list[str]:
    """Return the numbers in as many digits as they differ in, at least four."""
    texts = ([f"{mark:.{digits}g}" for mark in marks] for digits in range(4, 17))
    return next((text for text in texts if len({*text}) == len(marks)), [number(mark) for mark in marks])


def drawing_of(distribution: Distribution, scale: Scale) -> str:
    """Return the histogram, and below it the share of runs with an alarm for each threshold."""
    up = (("failing", distribution.failing),)
    down = (("healthy", distribution.healthy), ("unlabelled", distribution.unlabelled))
    counts = {name: _histogram(values, scale) for name, values in (*up, *down)}
    together = [sum(both) for both in zip(counts["healthy"], counts["unlabelled"], strict=True)]
    most_up, most_down = max(1, *counts["failing"]), max(1, *together)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_words(distribution)}">']
    parts += _bars("failing", counts["failing"], [0] * _BINS, most_up, scale, -1)
    parts += _bars("healthy", counts["healthy"], [0] * _BINS, most_down, scale, 1)
    parts += _bars("unlabelled", counts["unlabelled"], counts["healthy"], most_down, scale, 1)
    parts.append(_line("axis", scale.left, _MIDDLE, scale.left + scale.width, _MIDDLE))
    for y, most, counted_runs in (
        (_TOP + 10, most_up, distribution.failing),
        (_BOTTOM, most_down, (*distribution.healthy, *distribution.unlabelled)),
    ):
        if counted_runs:
            parts.append(_text(scale.left - 8, y, counted(most, "run"), "end"))
    for height, name, values in (
        (_TOP, "failing", distribution.failing),
        (_BOTTOM, "healthy", distribution.healthy),
    ):
        if values:
            parts.append(_text(scale.left + scale.width, height, f"{len(values):,} {name} runs", "end"))
    if distribution.unlabelled:
        other = f"{len(distribution.unlabelled):,} runs without a label"
        parts.append(_text(scale.left + scale.width, _BOTTOM + 16, other, "end"))
    parts += _shares(distribution, scale)
    marks = scale.marks()
    for mark, words in zip(marks, _told_apart(marks), strict=True):
        at = scale.x(mark)
        parts.append(_line("axis", at, _SHARES_BOTTOM, at, _SHARES_BOTTOM + 5))
        parts.append(_text(at, _HEIGHT - 18, words, "middle"))
    if distribution.limit is not None:
        at = scale.x(distribution.limit)
        parts.append(_line("limit", at, _TOP - 8, at, _SHARES_BOTTOM))
        parts.append(_text(at + 4, _TOP - 10, f"limit {number(distribution.limit)}", "start"))
    parts.append(_line("pick", -10, _TOP, -10, _SHARES_BOTTOM))
    return "".join([*parts, "</svg>"])


def _words(distribution: Distribution) -> str:
    return f"Histogram of {len(distribution.values)} runs, and the share of alarms for each limit"


def _histogram(values: Sequence[float], scale: Scale) -> list[int]:
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int(scale.share(value) * _BINS))] += 1
    return counts


def _bars(
    name: str, counts: list[int], below: list[int], most: int, scale: Scale, direction: int
) -> Iterable[str]:
    room, wide = _MIDDLE - _TOP, scale.width / _BINS
    for place, (count, first) in enumerate(zip(counts, below, strict=True)):
        if count:
            height, offset = room * count / most, room * first / most
            y = _MIDDLE - height if direction < 0 else _MIDDLE + offset
            x = scale.left + place * wide
            yield (
                f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{wide - 1:.1f}" height="{height:.1f}">'
                f"<title>{count} {name} runs</title></rect>"
            )


def _shares(distribution: Distribution, scale: Scale) -> Iterable[str]:
    """Yield a curve for each label: the share of its runs that a limit there would have stopped."""
    drawn = [f"{name} {line}" for name, line in _LINES.items() if getattr(distribution, name)]
    words = f"share of runs with an alarm, by limit: {', '.join(drawn)}"
    yield _text(scale.left, _SHARES_TOP - 10, words, "start")
    yield _line("axis", scale.left, _SHARES_BOTTOM, scale.left + scale.width, _SHARES_BOTTOM)
    for share in (0, 1):
        y = _SHARES_BOTTOM - share * (_SHARES_BOTTOM - _SHARES_TOP)
        yield _text(scale.left - 8, y + 4, f"{share:.0%}", "end")
    for name, values in (
        ("failing", distribution.failing),
        ("healthy", distribution.healthy),
        ("unlabelled", distribution.unlabelled),
    ):
        if values:
            points = []
            for place in range(201):
                limit = scale.value(place / 200)
                count = getattr(distribution.at(limit), name)
                y = _SHARES_BOTTOM - (_SHARES_BOTTOM - _SHARES_TOP) * count / len(values)
                points.append(f"{scale.left + scale.width * place / 200:.1f},{y:.1f}")
            yield f'<polyline class="{name}" points="{" ".join(points)}"><title>{name}</title></polyline>'


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
