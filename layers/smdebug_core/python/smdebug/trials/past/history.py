"""The steps before a step, for a view of a run as of that step, which reads them backwards.

The application has such a history over its step index. This module has one that is passed as plain data, and
one that continues it with another; `ListedHistory` lists.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout

GLOBAL = ModeKeys.GLOBAL
UNREAD = ""


class StepSummary(NamedTuple):
    """One complete (or settled) step as the step index knows it.

    `layout` is the digest of the step's content, from `AsOfTrial.move_to`. A step whose index files were not
    read has none, and its mode is not known either.
    """

    step: int
    mode: ModeKeys
    mode_step: int
    workers: tuple[str, ...]
    layout: str = UNREAD

    @classmethod
    def unread(cls, step: int, workers: Iterable[str]) -> StepSummary:
        """Return the summary of a step of which only the workers are known."""
        return cls(step, GLOBAL, step, tuple(workers))


class History(Protocol):
    """The earlier steps of a run. Every query is cheap for the step index.

    A step whose mode is unknown is returned for every mode; the caller has to read it.
    """

    def at(self, step: int) -> StepSummary | None:
        """Return that step; None if it was skipped or is not settled."""

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        """Yield the steps below it, newest first, of one mode or all. Pages are fetched as needed."""

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        """Return the earliest step, of one mode or all; None without one, or if finding it takes long."""

    def layouts(self) -> Mapping[str, StepLayout]:
        """Return the content of steps, by digest."""


class MemoryHistory:
    """A history held in memory: all of it, or from the step `complete_from` on."""

    def __init__(
        self,
        summaries: Iterable[StepSummary] = (),
        layouts: Mapping[str, StepLayout] | Iterable[StepLayout] = (),
        *,
        complete_from: int = 0,
    ):
        self._steps = sorted(summaries, key=attrgetter("step"))
        self._numbers = [summary.step for summary in self._steps]
        known = layouts.values() if isinstance(layouts, Mapping) else layouts
        self._layouts = {layout.digest: layout for layout in known}
        #: The step from which on no step is missing.
        self.complete_from = complete_from

    @classmethod
    def recent(cls, history: History, through_step: int, steps: int) -> MemoryHistory:
        """Return the last `steps` steps of a history, up to and including `through_step`."""
        newest_first = history.before(through_step + 1)
        last = list(islice(newest_first, steps))
        is_all = len(last) < steps
        complete_from = 0 if is_all else last[-1].step if last else through_step + 1
        layouts = [known for known in history.layouts().values() if known.first_step <= through_step]
        return cls(last, layouts, complete_from=complete_from)

    def at(self, step: int) -> StepSummary | None:
        at = bisect_left(self._numbers, step)
        return self._steps[at] if self._numbers[at : at + 1] == [step] else None

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        for at in range(bisect_left(self._numbers, step) - 1, -1, -1):
            if is_of(self._steps[at], mode):
                yield self._steps[at]

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return next((summary for summary in self._steps if is_of(summary, mode)), None)

    def layouts(self) -> Mapping[str, StepLayout]:
        return self._layouts

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data for JSON, where steps share what they have in common."""
        workers = list(dict.fromkeys(summary.workers for summary in self._steps))
        at = {names: position for position, names in enumerate(workers)}
        return {
            "complete_from": self.complete_from,
            "workers": [list(names) for names in workers],
            "steps": [
                [step, mode.name, mode_step, at[names], layout]
                for step, mode, mode_step, names, layout in self._steps
            ],
            "layouts": [
                {
                    "digest": layout.digest,
                    "names": list(layout.names),
                    "mode": layout.mode,
                    "first_step": layout.first_step,
                    "workers": list(layout.workers),
                }
                for layout in self._layouts.values()
            ],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MemoryHistory:
        """Return the history that `to_dict` described; `SMDebugValueError` if `content` is something else."""
        try:
            workers = [tuple(map(_text, names)) for names in content["workers"]]
            steps = [
                StepSummary(_number(step), ModeKeys[mode], _number(mode_step), workers[at], _text(layout))
                for step, mode, mode_step, at, layout in content["steps"]
            ]
            layouts = [
                StepLayout(
                    _text(layout["digest"]),
                    tuple(map(_text, layout["names"])),
                    ModeKeys[layout["mode"]].name,
                    _number(layout["first_step"]),
                    tuple(map(_text, layout["workers"])),
                )
                for layout in content["layouts"]
            ]
            return cls(steps, layouts, complete_from=_number(content["complete_from"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SMDebugValueError(
                f"This is not a history as returned by MemoryHistory.to_dict: {error!r}"
            ) from error


class ChainedHistory:
    """A recent history in memory, continued by an older one."""

    def __init__(self, recent: MemoryHistory, older: History):
        self._recent = recent
        self._older = older

    def at(self, step: int) -> StepSummary | None:
        history = self._recent if step >= self._recent.complete_from else self._older
        return history.at(step)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        border = self._recent.complete_from
        for summary in self._recent.before(step, mode):
            if summary.step < border:
                break
            yield summary
        if border > 0:
            yield from self._older.before(min(step, border), mode)

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return (self._older if self._recent.complete_from > 0 else self._recent).first(mode)

    def layouts(self) -> Mapping[str, StepLayout]:
        return {**self._older.layouts(), **self._recent.layouts()}


def is_of(summary: StepSummary, mode: ModeKeys | None) -> bool:
    """Return True if the step is of that mode, or may be."""
    return mode is None or summary.mode is mode or summary.layout == UNREAD


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is not text")
    return value
