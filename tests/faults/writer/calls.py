"""Each call of a storage: its number, its time, its fault, and the death of the process at it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.faults.writer.schedule import Worker
from tests.faults.writer.world import Killed, Process, here, world

HANGS_FOR = 60.0


class Effect(NamedTuple):
    """A call that was carried out."""

    at: float
    process: str
    thread: str
    what: str
    key: str


class Calls:
    """What happens at the calls of all processes of a world, by their workers' schedules."""

    def __init__(self, seed: int):
        self.chance = random.Random(f"calls {seed}")
        self.workers: dict[Process, Worker] = {}
        self.effects: list[Effect] = []
        self.refusals: Counter[tuple[str, str, str]] = Counter()
        """How often each process was refused each call for its credentials."""
        self._dies_after: set[Any] = set()

    def begin(self, what: str, key: str, seconds: float, within: Callable[[], object] | None = None) -> str:
        """Let others run meanwhile; return the fault that strikes the call, or ''.

        A process that dies within a call leaves what `within` does.
        """
        process = here().process
        self.meet_the_dead()
        worker = self.workers.get(process)
        number, process.calls = process.calls, process.calls + 1
        dies = worker is not None and worker.dies_at == number
        if dies and worker is not None and worker.dies != "after":
            if worker.dies == "within" and within is not None:
                within()
            world().note(process, "dies", worker.dies, number, what, key)
            process.end(killed=True)
            raise Killed
        now = world().clock
        faults = worker.faults if worker is not None else ()
        fault = next((f.kind for f in faults if f.strikes(number, key, now)), "")
        world().note(process, here().name, number, what, key, f"<- {fault}" if fault else "")
        if fault in ("expired", "denied"):
            self.refusals[process.name, what, key] += 1
        if dies:
            self._dies_after.add(here())
        world().sleep(2.0 if fault == "slow" else seconds)
        if fault == "thread" and here().name != "main":
            raise SystemExit
        return fault

    def done(self, what: str = "", key: str = "") -> None:
        """Note that a call took effect. A process that is to die after it dies now."""
        self.effects.append(Effect(world().clock, here().process.name, here().name, what, key))
        if here() in self._dies_after:
            here().process.end(killed=True)
            raise Killed

    def hang(self) -> None:
        world().note(here().process, here().name, "hangs")
        world().sleep(HANGS_FOR)

    def meet_the_dead(self) -> None:
        world().meet_the_dead(here().process)
