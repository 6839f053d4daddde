"""The budget of a run's custom rules: so many GB-seconds a day (UTC).

A claim reserves the most that its job can take, in one conditional write, and its commit gives back what the
job did not take. A job whose commit never came has taken all of it: the budget is never exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from functions.world import World

LONGEST_JOB = 120  # seconds: the time-out of the functions that run custom rules
_LEAST = 0.1  # seconds that a job counts for
_MB_IN_GB = 1024


@dataclass(frozen=True)
class Reservation:
    """What a claim has reserved: MB-seconds of a day, and since when."""

    day: str
    mb_seconds: int
    begun: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Reservation:
        return cls(str(content["day"]), int(content["mb_seconds"]), float(content["begun"]))


def reserve(world: World, run: str) -> Reservation | None:
    """Reserve the budget of one job; None if too little of the day's is left."""
    now = world.clock.now()
    most = world.settings.custom_gb_seconds * _MB_IN_GB
    wanted = Reservation(_day(now), world.settings.custom_memory_mb * LONGEST_JOB, now)
    is_left = wanted.mb_seconds <= most and world.index.budgets.spend(
        run, wanted.day, wanted.mb_seconds, most=most
    )
    return wanted if is_left else None


def give_back(world: World, run: str, reservation: Reservation) -> None:
    """Give back what the job has not taken. Done at most once, after its commit."""
    taken = max(_LEAST, world.clock.now() - reservation.begun) * world.settings.custom_memory_mb
    rest = reservation.mb_seconds - round(taken)
    if rest > 0:
        world.index.budgets.spend(run, reservation.day, -rest)


def why_spent(world: World, run: str) -> str:
    """Return why the run's custom rules are stopped, with what they have used."""
    day = _day(world.clock.now())
    used = world.index.budgets.spent(run, day) / _MB_IN_GB
    most = world.settings.custom_gb_seconds
    job = world.settings.custom_memory_mb * LONGEST_JOB / _MB_IN_GB
    return (
        f"The budget of the run's custom rules is spent: {used:,.0f} of {most:,} GB-seconds on {day} (UTC), "
        f"and the next job may take {job:,.0f}. Check fewer steps, make the rule faster, or raise the "
        "setting custom_gb_seconds. To continue on another day, attach the rule under another name."
    )


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
