"""What a reader of another tool's files hands to the writer of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from smdebug.files.names import LAST_STEP
from smdebug.mode_keys import ModeKeys

LONGEST_NAME = 300
MOST_SERIES = 2000
"""A log of more series than this has names that change from step to step."""
MOST_REASONS = 50
OTHER_REASONS = "others"
_TOO_LONG, _TOO_MANY, _NO_NAME = (
    "names of over 300 characters",
    "series beyond 2,000",
    "values without a name",
)


class Point(NamedTuple):
    """One value of one series, as another tool has logged it."""

    series: str
    step: int
    value: float
    time: float | None = None
    """The wall time, in seconds since 1970."""


@dataclass
class Details:
    """What a reader finds beside the values: the configuration, and what could not be read."""

    config: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    note: str = ""
    host: str = ""
    command: tuple[str, ...] = ()
    started: float | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    """How much was not imported, by what it is."""
    step_is: str = "step"
    """What the steps of the log count: `step`, `epoch` or `row`."""

    def leave_out(self, what: str, count: int = 1) -> None:
        """Note that something was not imported."""
        if what not in self.left_out and len(self.left_out) >= MOST_REASONS:
            what = OTHER_REASONS
        self.left_out[what] += count


@dataclass(frozen=True)
class Found:
    """A run that another tool has logged."""

    format: str
    place: Path
    name: str
    """The name of its folder below the destination, if several runs are imported."""
    read: Callable[[Details], Iterator[Point]] = field(repr=False, compare=False)
    """Yields its values in the order of the files, and notes everything else in the details."""


class Target(NamedTuple):
    """The series and the mode that a series of the log becomes."""

    series: str
    mode: ModeKeys

    def __str__(self) -> str:
        return f"{self.series} ({self.mode.name.lower()})"


@dataclass(frozen=True)
class ImportedRun:
    """What was imported of a run, and what was not."""

    found: Found
    location: str
    values: int
    steps: int
    series: Mapping[str, Target]
    left_out: Mapping[str, int]
    config: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "format": self.found.format,
            "source": str(self.found.place),
            "run": self.location,
            "values": self.values,
            "steps": self.steps,
            "series": {
                name: target._asdict() | {"mode": target.mode.name} for name, target in self.series.items()
            },
            "left_out": dict(self.left_out),
            "config": dict(self.config),
        }


def whole_step(value: Any) -> int | None:
    """Return the number of a step; None if the value is none, such as NaN, a text or a negative number."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(number) or number != int(number) or not 0 <= number <= LAST_STEP:
        return None
    return int(number)


def plain_number(value: Any) -> float | None:
    """Return the value if it is a number, also one that is not finite; None if it is anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:  # an integer of more digits than a float can hold
        return math.inf if int(value) > 0 else -math.inf


def named_values(points: Iterator[Point], details: Details) -> Iterator[Point]:
    """Yield the points whose names can be those of series; note the others."""
    known: set[str] = set()
    for point in points:
        if point.series not in known:
            problem = _problem_of(point.series, len(known))
            if problem:
                details.leave_out(problem)
                continue
            known.add(point.series)
        yield point


def _problem_of(name: str, known: int) -> str:
    if not name.strip():
        return _NO_NAME
    if len(name) > LONGEST_NAME:
        return _TOO_LONG
    return _TOO_MANY if known >= MOST_SERIES else ""
