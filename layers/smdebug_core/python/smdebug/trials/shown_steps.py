"""The steps of a run that a reader sees: those that no later attempt of the training hides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.trials.arguments import StepRange
from smdebug.trials.attempts import Attempts, Origin
from smdebug.trials.run_index import RunIndex
from smdebug.trials.worker_steps import Arrival, Workers


class ShownSteps:
    """All index files that were read, and an index of those that are shown.

    While one attempt wrote them all, both are the same object.
    """

    def __init__(self, attempt: int | None = None, within: StepRange | None = None):
        self.all = RunIndex()
        self.index = self.all
        self._attempt = attempt
        self._first, self._end = within or (None, None)
        self._hidden: dict[str, list[int]] | None = None

    def attempts(self, newest: Origin, *, ended: bool = False) -> Attempts:
        """Return the attempts in what was read; `newest` is the one that the collections file names."""
        return Attempts(self.all.at, newest, ended=ended)

    def has(self, origin: Origin) -> bool:
        """Return True if that attempt has saved a step."""
        return any(origin[:2] == known[:2] for known in self.all.origins)

    def add(self, arrivals: Iterable[Arrival], newest: Origin) -> set[int]:
        """Add what arrived, and return the steps that changed. This may replace the index."""
        before = dict(self.all.origins)
        changed = self.all.add(arrivals)
        self._hidden = None if changed else self._hidden
        if not changed or (len(self.all.origins) == 1 and not self._is_cut):
            return changed
        if before != self.all.origins or not self._are_of(newest, changed):
            self._show(self.attempts(newest).shown(self.all.at, self._attempt))
        else:
            self.index.add_read({step: self.all.at[step] for step in changed if self._wants(step)})
        return changed

    def hidden(self) -> Mapping[str, Sequence[int]]:
        """Return the steps of each worker whose file a later attempt hides, in order.

        The attempt that hides them may yet write the same files. Empty if one attempt was asked for.
        """
        if self._hidden is None:
            self._hidden = {}
            if self.index is not self.all and self._attempt is None:
                for step in filter(self._wants, self.all.steps(ModeKeys.GLOBAL)):
                    for worker in self.all.at[step].keys() - self.index.at.get(step, {}).keys():
                        self._hidden.setdefault(worker, []).append(step)
        return self._hidden

    def last_step_of(self, worker: str, origin: Origin) -> int:
        """Return the last step that the worker has saved in that attempt, or -1."""
        for step in reversed(self.index.steps(ModeKeys.GLOBAL)):
            written = self.index.at[step].get(worker)
            if written is not None and written.origin[:2] == origin[:2]:
                return step
        return -1

    def show_only(self, attempt: int, newest: Origin, path: str) -> bool:
        """Show the run as that attempt left it; return True if another one followed."""
        attempts = self.attempts(newest)
        numbers = attempts.numbers
        if attempt not in numbers:
            known = "; ".join(map(str, attempts.all())) or "none of them has saved a step"
            raise SMDebugValueError(f"There is no attempt {attempt} in the run at {path}: {known}")
        self._attempt = attempt
        self._show(attempts.shown(self.all.at, attempt))
        return attempt != numbers[-1]

    def _show(self, at: Mapping[int, Workers]) -> None:
        self.index = RunIndex()
        self.index.add_read({step: at[step] for step in at if self._wants(step)})

    @property
    def _is_cut(self) -> bool:
        return self._first is not None or self._end is not None

    def _wants(self, step: int) -> bool:
        return (self._first or 0) <= step and (self._end is None or step < self._end)

    def _are_of(self, newest: Origin, steps: Iterable[int]) -> bool:
        return all(
            written.origin[:2] == newest[:2]
            for step in steps
            for written in self.all.at[step].values()
        )
