"""One seed: its run under faults, what readers see, a later attempt on the left-overs, and the verdict."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from typing import NamedTuple

from tests.faults.writer.oracle import broken_promises, broken_when_resumed
from tests.faults.writer.reading import read
from tests.faults.writer.schedule import Schedule
from tests.faults.writer.training import Attempt, place_of, train


class Verdict(NamedTuple):
    """What a schedule has shown."""

    problems: list[str]
    story: str
    befell: Counter[str]
    """How often each fault struck, and how many processes were killed."""


def judge(seed: int, *, keeps_history: bool = False) -> Verdict:
    """Run the schedule of that seed, and a later attempt if its run can go on."""
    schedule = Schedule.drawn(seed)
    lines = [f"seed {seed}: {schedule}"]
    problems: list[str] = []
    befell: Counter[str] = Counter()
    with place_of(schedule) as place:
        try:
            first = train(schedule, place, keeps_history=keeps_history)
            lines += first.world.history or []
            befell = _what_befell(first)
            reading = read(place.storage())
            problems += broken_promises(first, reading)
            if not reading.has_ended:
                second = train(schedule.without_faults(), place, 1, keeps_history=keeps_history)
                lines += ["-- a later attempt", *(second.world.history or [])]
                again = read(place.storage())
                problems += broken_when_resumed(first, second, again, place.left_over())
        except Exception as error:
            problems.append("".join(traceback.format_exception(error)))
        where = place.storage().location
    # Two stories of a seed are the same text.
    story = re.sub("[0-9a-f]{32}", "RUN-ID", "\n".join(lines).replace(where, "PLACE"))
    return Verdict(problems, story, befell)


def _what_befell(attempt: Attempt) -> Counter[str]:
    befell: Counter[str] = Counter()
    for handed in attempt.handed:
        befell += Counter({fault.kind: fault.met for fault in handed.worker.faults})
        befell["killed"] += handed.process.was_killed
    return befell
