"""Which runs each call of a deployed backtest judges, how long all take, and what they cost.

The rates are on the page docs/backtest.md, with the formula. A test counts the requests of real calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.question import Question, names_of
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.rule_sets import ALL, DEFAULT, USUAL, USUAL_RULES
from smdebug.service.costs import PRICES

CHUNK_SECONDS = 30.0
"""The work of one call, as it is estimated. It has twice that time to begin a run, and then 200 s for it."""
BEGIN_WITHIN = 70.0
RUN_SECONDS = 200.0
MOST_IN_CHUNK = 50
MOST_IN_CUSTOM_CHUNK = 10
"""Their answers pass through the state machine, which takes 256 KB."""
MOST_RUNS = 200_000

# Seconds of a function with 1 GB.
OPENING = 0.3
READING_STEP = 0.0015
CHECKING_STEP = 0.0004
"""Of one rule at one step."""
STARTING = 10.0
"""Until the first calls are warm, and after the last."""
SANDBOX = 1.0
"""A process for each run, which imports the library."""

# Requests
GETS_OF_RUN = 8
GETS_OF_STEP = 2
"""The index file and the event file; each further worker has two of its own."""
GETS_OF_BUNDLED_RUN = 4
"""The bundle has the files of its steps."""
KEYS_OF_LISTING = 1000
TRANSITION = 2.5e-5
"""Dollars: what Step Functions asks for starting a child."""


_OF_SET = {DEFAULT: 12, USUAL: len(USUAL_RULES), ALL: 20}


class PlannedRun(NamedTuple):
    """A run, with the number of index files, of which each is a step of a worker."""

    run: FoundRun
    steps: int
    is_bundled: bool = False
    """Whether a bundle has its files, so that they are not requested one by one."""
    identity: str = ""
    """What the run was when it was planned; empty if that is not known."""


@dataclass(frozen=True)
class Work:
    """What judging some runs takes."""

    seconds: float = 0.0
    gets: int = 0
    lists: int = 0
    puts: int = 0
    runs: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, name) + getattr(other, name) for name in vars(self)))

    @property
    def of_requests(self) -> float:
        """Return the price of the requests, in dollars."""
        requests = {"S3 GET": self.gets, "S3 LIST": self.lists, "S3 PUT": self.puts}
        return sum(PRICES[name] * number for name, number in requests.items())

    def dollars(self, memory_mb: int, *, custom: bool, chunks: int = 1) -> float:
        """Return the price; of the rules' own code, a process of the sandbox for each run is a part of it."""
        seconds = self.seconds + (SANDBOX * self.runs if custom else 0.0)
        invocations = chunks * (2 if custom else 1) + (self.runs if custom else 0)
        return (
            seconds * memory_mb / 1024 * PRICES["GB-second"]
            + self.of_requests
            + chunks * PRICES["S3 PUT"]
            + invocations * PRICES["invocation"]
            + chunks * (PRICES["execution"] + TRANSITION + 4 * PRICES["write unit"])
            + seconds / 16 * PRICES["execution GB-second"]  # 64 MB
        )


def seconds_for_run(question: Question) -> float:
    """Return the time after which a run has no verdict."""
    return min(question.timeout, RUN_SECONDS)


def rules_counted(question: Question) -> int:
    """Return how many rules the question is worth; those of a set share what they read."""
    rules = sum(_OF_SET.get(name.lower(), 1) for name in names_of(question.rules))
    return rules * (1 if question.against is None else 2)


def work_of(run: PlannedRun, rules: int) -> Work:
    """Return what judging a run takes; the first time, its bundle is written."""
    steps, is_bundled = run.steps, run.is_bundled
    return Work(
        seconds=OPENING + steps * (READING_STEP + CHECKING_STEP * rules),
        gets=GETS_OF_BUNDLED_RUN if is_bundled else GETS_OF_RUN + GETS_OF_STEP * steps,
        lists=1 + 2 * math.ceil(steps / KEYS_OF_LISTING),  # collections; event files and index files
        puts=0 if is_bundled else 1,
        runs=1,
    )


@dataclass(frozen=True)
class Chunk:
    """The runs that one call judges."""

    number: int
    runs: tuple[PlannedRun, ...]

    def work(self, rules: int) -> Work:
        return sum((work_of(each, rules) for each in self.runs), Work())

    def to_dict(self, id: str, *, dollars: float, custom: bool) -> dict[str, Any]:
        """As the manifest has it: the input of one child."""
        return {
            "backtest": id,
            "chunk": self.number,
            "custom": custom,
            "dollars": round(dollars, 9),
            "requests": round(self.work(0).of_requests, 9),
            "runs": [list(each.run) for each in self.runs],
            "identities": [each.identity for each in self.runs],
        }


def chunks_of(runs: Iterable[PlannedRun], rules: int, *, custom: bool = False) -> list[Chunk]:
    """Divide the runs by the work that they are, in their order; a long run is alone."""
    chunks: list[Chunk] = []
    kept: list[PlannedRun] = []
    seconds = 0.0
    most = MOST_IN_CUSTOM_CHUNK if custom else MOST_IN_CHUNK
    for run in runs:
        of_run = work_of(run, rules).seconds
        if kept and (seconds + of_run > CHUNK_SECONDS or len(kept) >= most):
            chunks.append(Chunk(len(chunks), tuple(kept)))
            kept, seconds = [], 0.0
        kept.append(run)
        seconds += of_run
    if kept:
        chunks.append(Chunk(len(chunks), tuple(kept)))
    return chunks


@dataclass(frozen=True)
class Capacity:
    """What the deployed application gives to backtests."""

    at_once: int
    memory_mb: int
    keeps_bundles: bool = True
    slows_live_runs: bool = False
    """Whether the account is so small that live runs miss the calls of a backtest."""

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Capacity:
        return cls(
            int(payload["at_once"]),
            int(payload["memory_mb"]),
            keeps_bundles=bool(payload.get("bundles", True)),
            slows_live_runs=bool(payload.get("slows_live_runs", False)),
        )


@dataclass(frozen=True)
class Estimate:
    """What a backtest takes, before anything is started."""

    runs: int
    chunks: int
    steps: int
    dollars: float
    seconds: float
    bundled: int = 0
    """How many of the runs have a bundle already."""
    dollars_bundled: float = 0.0
    """What it would cost if all of them had one."""
    writes_bundles: bool = False
    """Whether this backtest writes the others, so that the next one costs that much."""
    slows_live_runs: bool = False
    """Whether live runs are slowed down meanwhile, as the account is small."""

    @property
    def saves_the_next(self) -> float:
        """Dollars that the next backtest of these runs costs less, as this one writes their bundles."""
        return (
            self.dollars - self.dollars_bundled if self.writes_bundles and self.bundled < self.runs else 0.0
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **vars(self),
            "dollars": round(self.dollars, 4),
            "dollars_bundled": round(self.dollars_bundled, 4),
            "seconds": round(self.seconds, 1),
        }


def estimate(chunks: Iterable[Chunk], rules: int, capacity: Capacity, *, custom: bool) -> Estimate:
    """Return what judging the chunks takes."""
    works = [(chunk, chunk.work(rules)) for chunk in chunks]
    total = sum((work for _, work in works), Work())
    runs = [run for chunk, _ in works for run in chunk.runs]
    bundled = sum((work_of(run._replace(is_bundled=True), rules) for run in runs), Work())
    extra = SANDBOX if custom else 0.0
    longest = max((work.seconds + extra * work.runs for _, work in works), default=0.0)
    spread = (total.seconds + extra * total.runs) / max(1, capacity.at_once)
    # The calls are not of the same length: the last begin when the others end.
    seconds = spread + longest + STARTING if works else 0.0
    return Estimate(
        total.runs,
        len(works),
        sum(run.steps for run in runs),
        total.dollars(capacity.memory_mb, custom=custom, chunks=len(works)),
        seconds,
        sum(run.is_bundled for run in runs),
        bundled.dollars(capacity.memory_mb, custom=custom, chunks=len(works)),
        writes_bundles=capacity.keeps_bundles and not custom,
        slows_live_runs=capacity.slows_live_runs,
    )


def in_dollars(amount: float) -> str:
    """Return the amount as people read it: in cents, or in as many decimals as a fraction of one needs."""
    if amount >= 0.01:
        return f"${amount:,.2f}"
    return f"${float(f'{amount:.3g}'):.12f}".rstrip("0").rstrip(".")


def refuse_expensive(estimated: Estimate, budget: float) -> None:
    """Raise `SMDebugValueError` if the backtest is estimated to cost more than its budget."""
    if estimated.dollars > budget:
        saves = round(estimated.saves_the_next, 2)
        later = f", which would save the next one {in_dollars(saves)} by bundles" if saves else ""
        raise SMDebugValueError(
            f"This backtest is estimated at {in_dollars(estimated.dollars)}{later}, "
            f"and the budget is {in_dollars(budget)}: "
            "choose fewer runs with --where, --since or --limit, or set --budget"
        )


def refuse_slowing(capacity: Capacity) -> None:
    """Raise `SMDebugValueError` if live runs would be slowed down."""
    if capacity.slows_live_runs:
        raise SMDebugValueError(
            f"The account is so small that {capacity.at_once} calls of a backtest slow down live runs: "
            "ask AWS for a higher quota of concurrent executions, which is free, and deploy again, or give "
            "--slow-live-runs when nothing trains"
        )


# Where it is in the bucket

BUNDLES = "backtests/bundles/"
"""The folder of the runs' bundles, which is no backtest."""


def folder_of(id: str) -> str:
    """Return the folder of a backtest. Its keys have no suffix, so they notify nobody."""
    return f"backtests/{id}"


def plan_key(id: str) -> str:
    return f"{folder_of(id)}/plan"


def manifest_key(id: str) -> str:
    return f"{folder_of(id)}/manifest"


def rows_folder(id: str) -> str:
    return f"{folder_of(id)}/rows/"


def rows_key(id: str, chunk: int) -> str:
    return f"{rows_folder(id)}{chunk:06}"
