"""Which steps of a run can be read, might still arrive, or were skipped for good.

A step is *complete* when every worker has written it; where all but one save digests alone, when that one
has. It is *settled* when no later arrival can change
what is known of it. Workers write in order and a listing misses nothing, so a complete step settles every
earlier one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum

NOTHING_SETTLED = -1
WAIT_WINDOW = 1000


class StepState(Enum):
    """Whether a step can be read, was skipped, or might still arrive."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


@dataclass(frozen=True)
class RunProgress:
    """What is known of a run's steps from its index files so far.

    `workers_by_step` may be a live mapping that its owner adds to, if the owner passes every step that
    changed to `with_news`. The cost is then that of the news, however long the run.
    """

    num_workers: int = 1
    #: The worker whose file completes a step, where the others save digests alone.
    chief: str | None = None
    workers_by_step: Mapping[int, Set[str]] = field(default_factory=dict)
    ended: bool = False
    #: How many incomplete steps to wait for, before the earlier half of a window counts as lost.
    wait_window: int = WAIT_WINDOW
    #: The highest step that is complete, or lost because the window was full.
    settled_through: int = NOTHING_SETTLED
    #: Known steps after it, in order.
    open_steps: tuple[int, ...] = ()

    def is_complete(self, step: int) -> bool:
        """Return True if all workers have written `step`, or the chief has where there is one."""
        if self.chief is not None:
            return self.chief in self.workers_by_step.get(step, ())
        return len(self.workers_by_step.get(step, ())) >= self.num_workers

    def is_settled(self, step: int) -> bool:
        """Return True if no later arrival can change what is known of `step`."""
        return self.ended or step <= self.settled_through

    @property
    def has_all_settled(self) -> bool:
        """Whether every known step is settled."""
        return self.ended or not self.open_steps

    def state_of(self, step: int) -> StepState:
        """Return whether `step` can be read, might still arrive, or was skipped for good."""
        if not self.is_settled(step):
            return StepState.NOT_YET_AVAILABLE
        return StepState.AVAILABLE if step in self.workers_by_step else StepState.UNAVAILABLE

    def state_in_mode(
        self, mode_step: int, mode_steps: Sequence[int], global_steps: Mapping[int, int]
    ) -> StepState:
        """Return the state of a step counted within its mode, given the known steps of that mode.

        A mode's steps are taken in order, so the next known step decides for all before it.
        """
        at = bisect_left(mode_steps, mode_step)
        if at == len(mode_steps):
            return StepState.UNAVAILABLE if self.ended else StepState.NOT_YET_AVAILABLE
        state = self.state_of(global_steps[mode_steps[at]])
        skipped = mode_steps[at] != mode_step and state is StepState.AVAILABLE
        return StepState.UNAVAILABLE if skipped else state

    def counted_after(self, counted: int) -> int:
        """Return the last complete step as it is counted at a refresh, when it was `counted` before.

        It moves to a step that all workers have written, and else by half a window, as in the old library.
        """
        through = self.settled_through
        if self.ended or through <= counted or self.is_complete(through):
            return through
        passed = sorted(step for step in self.workers_by_step if counted < step <= through)
        complete = [step for step in passed if self.is_complete(step)]
        half = passed[: max(1, self.wait_window // 2)]
        return (complete or half)[-1]

    def with_arrival(self, *, step: int, worker: str) -> RunProgress:
        """Return the progress after `worker` has written `step`."""
        workers = self.workers_by_step.get(step, frozenset()) | {worker}
        known = {**self.workers_by_step, step: workers}
        return replace(self, workers_by_step=known).with_news([step])

    def with_news(self, steps: Iterable[int]) -> RunProgress:
        """Return the progress after `workers_by_step` has changed at these steps."""
        news = {step for step in steps if step > self.settled_through}
        through = max(filter(self.is_complete, news), default=self.settled_through)
        waiting = sorted(step for step in news.union(self.open_steps) if step > through)
        # The window moves until the rest fits into it: refreshing more often must not settle more.
        while len(waiting) > self.wait_window:
            given_up = max(1, self.wait_window // 2)
            through = waiting[given_up - 1]
            waiting = waiting[given_up:]
        return self._settled(through, waiting)

    def with_num_workers(self, num_workers: int) -> RunProgress:
        """Return the progress of a run that turns out to have `num_workers` workers."""
        if num_workers == self.num_workers:
            return self
        return replace(self, num_workers=num_workers).with_news(self.open_steps)

    def at_the_end(self) -> RunProgress:
        """Return the progress when nothing more can arrive."""
        through = max(self.open_steps, default=self.settled_through)
        return replace(self._settled(through, ()), ended=True)

    def _settled(self, through: int, waiting: Sequence[int]) -> RunProgress:
        if through == self.settled_through and len(waiting) == len(self.open_steps):
            return self
        return replace(self, settled_through=through, open_steps=tuple(waiting))
