"""Which steps of a run can be read, might still arrive, or were skipped for good.

A step is *complete* when every worker has written it. It is *settled* when nothing that still arrives
may change what is known of it; who decides that is the settling rule, which is a value: a listing, in
which nothing is missing, settles more than single notifications do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum

NOTHING_SETTLED = -1
WAIT_WINDOW = 1000


class StepState(Enum):
    """Can a step be read, was it skipped, or might it still arrive?"""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


def in_a_listing(progress: RunProgress, step: int) -> bool:
    """The rule of a reader who lists: workers write in order, so a complete step settles all before it."""
    return step <= progress.settled_through


@dataclass(frozen=True)
class RunProgress:
    """What the index files of one run have told us so far.

    `workers_by_step` may be a live mapping that its owner adds to, as long as each addition is announced
    by `with_news`: the cost is then that of the news, whatever the length of the run.
    """

    num_workers: int = 1
    workers_by_step: Mapping[int, Set[str]] = field(default_factory=dict)
    ended: bool = False
    #: How many incomplete steps are waited for, before the earlier half of a window counts as lost.
    wait_window: int = WAIT_WINDOW
    settled_by: Callable[[RunProgress, int], bool] = in_a_listing
    #: The highest step that is complete, or that the window gave up waiting for.
    settled_through: int = NOTHING_SETTLED
    #: Known steps beyond it, in order.
    open_steps: tuple[int, ...] = ()

    def is_complete(self, step: int) -> bool:
        """Have all workers written `step`?"""
        return len(self.workers_by_step.get(step, ())) >= self.num_workers

    def is_settled(self, step: int) -> bool:
        """Is everything known of `step` that will ever be?"""
        return self.ended or self.settled_by(self, step)

    @property
    def has_all_settled(self) -> bool:
        """Is every step settled that is known? False where that would take a look at each."""
        return self.ended or (not self.open_steps and self.settled_by is in_a_listing)

    def state_of(self, step: int) -> StepState:
        """Can `step` be read, might it still arrive, or was it skipped for good?"""
        if not self.is_settled(step):
            return StepState.NOT_YET_AVAILABLE
        return StepState.AVAILABLE if step in self.workers_by_step else StepState.UNAVAILABLE

    def state_in_mode(
        self, mode_step: int, mode_steps: Sequence[int], global_steps: Mapping[int, int]
    ) -> StepState:
        """The same for a step counted within its mode, given the known steps of that mode.

        A mode's steps are taken in order, so the next known one tells of all that lie before it.
        """
        at = bisect_left(mode_steps, mode_step)
        if at == len(mode_steps):
            return StepState.UNAVAILABLE if self.ended else StepState.NOT_YET_AVAILABLE
        state = self.state_of(global_steps[mode_steps[at]])
        skipped = mode_steps[at] != mode_step and state is StepState.AVAILABLE
        return StepState.UNAVAILABLE if skipped else state

    def with_arrival(self, *, step: int, worker: str) -> RunProgress:
        """The progress after `worker` has written `step`."""
        workers = self.workers_by_step.get(step, frozenset()) | {worker}
        known = {**self.workers_by_step, step: workers}
        return replace(self, workers_by_step=known).with_news([step])

    def with_news(self, steps: Iterable[int]) -> RunProgress:
        """The progress after `workers_by_step` has got something new about these steps."""
        news = {step for step in steps if step > self.settled_through}
        through = max(filter(self.is_complete, news), default=self.settled_through)
        waiting = sorted(step for step in news.union(self.open_steps) if step > through)
        # Looking more often must not settle more: the window moves on until what is left fits into it.
        while len(waiting) > self.wait_window:
            given_up = max(1, self.wait_window // 2)
            through = waiting[given_up - 1]
            waiting = waiting[given_up:]
        return self._settled(through, waiting)

    def with_num_workers(self, num_workers: int) -> RunProgress:
        """The progress once it is known how many workers there are."""
        if num_workers == self.num_workers:
            return self
        return replace(self, num_workers=num_workers).with_news(self.open_steps)

    def at_the_end(self) -> RunProgress:
        """The progress when nothing more can arrive."""
        through = max(self.open_steps, default=self.settled_through)
        return replace(self._settled(through, ()), ended=True)

    def _settled(self, through: int, waiting: Sequence[int]) -> RunProgress:
        if through == self.settled_through and len(waiting) == len(self.open_steps):
            return self
        return replace(self, settled_through=through, open_steps=tuple(waiting))
