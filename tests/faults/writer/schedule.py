"""What happens in one schedule, drawn from its seed: the place, the trainings and the faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

FOLDER_FAULTS = (
    "short",  # a write takes a part
    "full",
    "quota",
    "io",
    "readonly",
    "files",  # too many are open
    "hang",
    "slow",
    "unanswered",  # a rename that happened is reported as failed
    "late",  # what was written is refused when the file is closed
    "thread",  # the thread that writes is killed
)
BUCKET_FAULTS = (
    "throttled",
    "internal",
    "expired",
    "denied",
    "unanswered",  # the request took effect, its answer was lost
    "unreachable",
    "hang",
    "slow",
    "thread",
)
PARTS = ("", "", "", "events/", "index/", "collections/", "training_job_end.ts", "claim.smd", "origin.json")
ENDS = ("closes", "closes", "closes", "exits", "interrupted", "lingers")
KEEPS_TROUBLE = frozenset(("short", "slow"))
"""Faults that cost time at most."""


@dataclass
class Fault:
    """One fault of one process, from one of its calls on."""

    kind: str
    first: int
    """The number of the process's call at which it may begin."""
    calls: float
    """How many calls it concerns."""
    seconds: float
    """How long it lasts from its first call on."""
    keys: str
    """The beginning of the keys that it concerns."""
    met: int = 0
    began: float = inf
    ended: float = -inf

    def strikes(self, number: int, key: str, now: float) -> bool:
        """Whether it strikes this call."""
        if number < self.first or not key.startswith(self.keys) or self.met >= self.calls:
            return False
        if now > self.began + self.seconds:
            return False
        self.began = min(self.began, now)
        self.ended = now
        self.met += 1
        return True

    def is_over(self, now: float) -> bool:
        """Whether it can strike no call from now on."""
        return self.met >= self.calls or now > self.began + self.seconds

    def __str__(self) -> str:
        keys = f" at {self.keys}" if self.keys else ""
        return f"{self.kind}{keys} from call {self.first}, {self.calls} calls, {self.seconds:g} s"


@dataclass
class Worker:
    """One training process."""

    rank: int
    steps: int
    pause: float
    ends: str
    dies_at: int | None = None
    """The number of the call at which it is killed."""
    dies: str = "before"
    faults: list[Fault] = field(default_factory=list)


@dataclass
class Schedule:
    """One run and what befalls it."""

    seed: int
    place: str
    workers: list[Worker]
    interval: int
    size: int
    """How many numbers the large tensor has."""
    late: bool
    """Whether values come after their step."""
    queue_mb: float
    patience: float

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        chance = random.Random(f"writer {seed}")
        place = chance.choice(("folder", "bucket"))
        how_many = chance.choice((1, 1, 1, 4))
        steps = chance.randint(2, 5 if how_many > 1 else 8)
        pause = chance.choice((0.01, 0.5, 5.0, 25.0))
        schedule = cls(
            seed,
            place,
            [Worker(rank, steps, pause, chance.choice(ENDS)) for rank in range(how_many)],
            interval=chance.choice((1, 1, 2)),
            size=chance.choice((3, 700, 2000, 70_000)),
            late=chance.random() < 0.15,
            queue_mb=chance.choice((256, 256, 0.01)),
            patience=chance.choice((30.0, 30.0, 3.0)),
        )
        schedule._draw_faults(chance)
        return schedule

    def _draw_faults(self, chance: random.Random) -> None:
        kinds = FOLDER_FAULTS if self.place == "folder" else BUCKET_FAULTS
        # A call of a worker's whole training: about so many.
        calls = 12 + self.workers[0].steps * (9 if self.place == "folder" else 3)
        shared = chance.random() < 0.3  # the place has the fault, not the worker
        for worker in self.workers:
            if worker.faults:
                continue
            if chance.random() < (0.25 if len(self.workers) == 1 else 0.12):
                worker.dies_at = chance.randrange(calls)
                worker.dies = chance.choice(("before", "within", "after"))
            for _ in range(chance.choice((0, 1, 1, 2, 3))):
                drawn = _fault(chance, kinds, calls)
                for other in self.workers if shared else (worker,):
                    other.faults.append(drawn())

    def without_faults(self) -> Schedule:
        """Return the schedule of a later attempt at the same place, sometimes of fewer steps."""
        first = self.workers[0]
        steps = max(1, first.steps - 2) if self.seed % 3 else first.steps
        workers = [Worker(w.rank, steps, first.pause, "closes") for w in self.workers]
        return Schedule(
            self.seed, self.place, workers, self.interval, self.size, self.late, 256, self.patience
        )

    def __str__(self) -> str:
        lines = [
            f"{self.place}, {len(self.workers)} workers of {self.workers[0].steps} steps, every "
            f"{self.interval} saved, {self.workers[0].pause:g} s between; patience {self.patience:g} s, "
            f"queue {self.queue_mb:g} MB, {self.size} numbers{', late values' if self.late else ''}"
        ]
        for worker in self.workers:
            dies = "" if worker.dies_at is None else f"; killed {worker.dies} call {worker.dies_at}"
            faults = "".join(f"; {fault}" for fault in worker.faults)
            lines.append(f"  worker_{worker.rank} {worker.ends}{dies}{faults}")
        return "\n".join(lines)


def _fault(chance: random.Random, kinds: tuple[str, ...], calls: int) -> Callable[[], Fault]:
    kind = chance.choice(kinds)
    first = chance.randrange(calls)
    number = chance.choice((1, 1, 2, 5, inf))
    seconds = chance.choice((1.0, 20.0, 60.0, 240.0, inf)) if number == inf else inf
    keys = chance.choice(PARTS)
    if keys:
        first = chance.randrange(max(1, calls // 2))
    return lambda: Fault(kind, first, number, seconds, keys)
