"""A run that is read from its first step to its last one, for a report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.plain_text import escaped
from smdebug.runs.left_out import unread_in_words
from smdebug.runs.verdicts import Verdict
from smdebug.trials import Trial
from smdebug.ui.answer_types import VerdictAnswer
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.drawing.pyramid import Pyramid
from smdebug.ui.following.verdict_answers import verdict_answer

Progress = Callable[[int], Any]

_BUDGET = 24 << 20
"""Bytes that the statistics of one kind may take: more than a report holds of them."""
_SETTLE_EVERY = 64


def read_charts(
    trial: Trial,
    *,
    measured: Collection[int] | None = None,
    progress: Progress = lambda done: None,
) -> Charts:
    """Read every step of a run. Saved tensors are measured at the steps in `measured`, or else at all."""
    charts = Charts(budget=_BUDGET, measured=measured)
    for at, step in enumerate(trial.steps()):
        charts.read(trial, step)
        if at % _SETTLE_EVERY == _SETTLE_EVERY - 1:
            charts.settle()
        progress(1)
    charts.settle()
    return charts


@dataclass(frozen=True)
class WholeRun:
    """A run with its charts and the verdicts of its rules. It answers as a run does that the server reads."""

    trial: Trial
    charts: Charts
    verdicts: Sequence[Verdict] = ()
    issues: Sequence[Issue] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)
    version: int = 0
    error: str = ""
    is_listing: bool = False
    is_known: bool = True

    @property
    def path(self) -> str:
        return self.trial.path

    @property
    def steps(self) -> list[int]:
        return self.trial.steps()

    @property
    def has_ended(self) -> bool:
        return self.trial.loaded_all_steps

    @property
    def steps_read(self) -> int:
        return len(self.steps)

    @property
    def steps_checked(self) -> int:
        return len(self.steps)

    @property
    def workers(self) -> list[str]:
        return [escaped(name) for name in self.trial.workers()]

    @property
    def verdict(self) -> VerdictAnswer:
        return verdict_answer(self.verdicts, has_checked=bool(self.steps))

    @property
    def series(self) -> dict[str, Pyramid]:
        return self.charts.series

    @property
    def kinds(self) -> dict[str, Statistics]:
        return self.charts.kinds

    @cached_property
    def missing(self) -> str:
        return escaped(unread_in_words(self.trial, is_listed=True))

    @property
    def damaged(self) -> dict[str, str]:
        return self.charts.damaged

    def order(self, kind: str) -> list[int]:
        """Return the places of a kind's tensors in the order of the network."""
        return self.charts.order(kind, self.trial, self.steps[-1])
