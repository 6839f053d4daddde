"""Simulated processes: their threads are greenlets that take turns by a seed, under a clock of their own.

A thread gives way when it waits, when it takes a lock and at every call of the storage. A process that is
killed, or that ends, has no effect from then on: its threads meet `Killed` wherever they go.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Any

from greenlet import getcurrent, greenlet

BEGIN = 1_700_000_000.0
MOST_TURNS = 200_000
_YIELDS_AT_LOCKS = 0.15


class Killed(BaseException):
    """The process of this thread is gone."""


class Stuck(AssertionError):
    """The processes wait for each other, or do not come to an end."""


class Process:
    """A training process: its threads, what it has logged, and what ends with it."""

    def __init__(self, world: World, name: str, number: int):
        self.world = world
        self.name = name
        self.pid = number
        self.is_gone = False
        self.was_killed = False
        self.calls = 0
        self.log: list[tuple[float, int, str]] = []
        self.at_exit: list[Callable[[], object]] = []
        self.savers: dict[Any, Any] = {}
        self.when_gone: list[Callable[[], object]] = []

    def end(self, *, killed: bool = False) -> None:
        """End the process: nothing of it has an effect from now on."""
        if self.is_gone:
            return
        self.is_gone, self.was_killed = True, killed
        self.world.note(self, "is killed" if killed else "has ended")
        for clean_up in self.when_gone:
            clean_up()


class VirtualThread:
    """A thread of a simulated process."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str = "",
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
        process: Process | None = None,
    ):
        self.name = name
        self.daemon = daemon
        self.process = process or here().process
        self.wake_at = 0.0
        self.until: Callable[[], bool] | None = None
        self.is_done = False
        self._begun = False
        self._work = lambda: target(*args, **(kwargs or {})) if target is not None else None
        self.greenlet: greenlet | None = None

    def start(self) -> None:
        world = self.process.world
        world.meet_the_dead(self.process)
        self._begun = True
        self.greenlet = greenlet(self._live, parent=world.main)
        world.threads.append(self)

    def join(self, timeout: float | None = None) -> None:
        self.process.world.block(lambda: self.is_done, timeout)

    def is_alive(self) -> bool:
        return self._begun and not self.is_done

    def _live(self) -> None:
        try:
            self.process.world.meet_the_dead(self.process)
            self._work()
        except (Killed, SystemExit):
            pass
        except BaseException as error:
            if not self.process.is_gone:
                self.process.world.broken.append(error)
        finally:
            self.is_done = True


class World:
    """The clock, the processes, and whose turn it is."""

    def __init__(self, seed: int, *, keeps_history: bool = False):
        self.chance = random.Random(seed)
        self.clock = BEGIN
        self.main = getcurrent()
        self.threads: list[VirtualThread] = []
        self._left_over: list[VirtualThread] = []  # of processes that are gone
        self.processes: list[Process] = []
        self.running: VirtualThread | None = None
        self.broken: list[BaseException] = []
        self.history: list[str] | None = [] if keeps_history else None
        self.turns = 0

    def process(self, name: str, life: Callable[[Process], object]) -> Process:
        """Begin a process that does `life`, and then what it has registered for its end."""
        process = Process(self, name, 1000 + len(self.processes))
        self.processes.append(process)

        def whole_life() -> None:
            life(process)
            while process.at_exit:
                process.at_exit.pop()()
            process.end()

        VirtualThread(target=whole_life, name="main", process=process).start()
        return process

    def run(self) -> None:
        """Let the threads take turns until every process has ended."""
        global _world
        _world = self
        try:
            while not self.broken and (alive := self._alive()):
                self._turn(alive)
        finally:
            self._bury()
            _world = None
        if self.broken:
            raise self.broken[0]

    def _alive(self) -> list[VirtualThread]:
        if any(t.is_done or t.process.is_gone for t in self.threads):
            self._left_over += [t for t in self.threads if t.process.is_gone and not t.is_done]
            self.threads = [t for t in self.threads if not t.is_done and not t.process.is_gone]
        return self.threads

    def _turn(self, alive: list[VirtualThread]) -> None:
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise Stuck(f"no end after {MOST_TURNS:,} turns, at {self.clock - BEGIN:.0f} s")
        now = self.clock
        ready = [t for t in alive if t.wake_at <= now or (t.until is not None and t.until())]
        if not ready:
            self.clock = min(t.wake_at for t in alive)
            if self.clock == inf:
                raise Stuck(f"all wait: {[(t.process.name, t.name) for t in alive]}")
            return
        thread = ready[0] if len(ready) == 1 else self.chance.choice(ready)
        self._switch_to(thread)

    def _switch_to(self, thread: VirtualThread) -> None:
        self.running = thread
        assert thread.greenlet is not None
        thread.greenlet.switch()
        self.running = None

    def _bury(self) -> None:
        """Run what is left of the threads to its end: each meets `Killed` at its next call."""
        for process in self.processes:
            process.end(killed=True)
        self._alive()
        for thread in self._left_over:
            for _ in range(1000):
                if thread.is_done:
                    break
                self._switch_to(thread)
            else:
                raise Stuck(f"{thread.name} of {thread.process.name} goes on after its process")

    # What threads call

    def block(self, until: Callable[[], bool] | None, seconds: float | None) -> bool:
        """Wait until that holds, or for so long; return whether it holds."""
        thread = here()
        self.meet_the_dead(thread.process)
        if until is not None and until():
            return True
        thread.until = until
        thread.wake_at = inf if seconds is None else self.clock + max(0.0, seconds)
        self.main.switch()
        thread.until, thread.wake_at = None, 0.0
        self.meet_the_dead(thread.process)
        return until is None or until()

    def sleep(self, seconds: float) -> None:
        self.block(None, seconds)

    def give_way(self) -> None:
        """Let another thread run, perhaps."""
        if self.chance.random() < _YIELDS_AT_LOCKS:
            self.block(None, 0.0)

    def meet_the_dead(self, process: Process) -> None:
        if process.is_gone:
            raise Killed

    def note(self, process: Process, *words: object) -> None:
        """Add a line to the story."""
        if self.history is not None:
            text = " ".join(str(word)[:200] for word in words)
            self.history.append(f"{self.clock - BEGIN:9.3f} {process.name:<10} {text}")


_world: World | None = None


def here() -> VirtualThread:
    """Return the simulated thread that runs."""
    assert _world is not None
    assert _world.running is not None
    return _world.running


def world() -> World:
    """Return the world that runs."""
    assert _world is not None
    return _world
