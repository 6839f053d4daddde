"""What the answers ask of a run that was read: so far by the server, or to its end for a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from smdebug.diagnosis import Issue
from smdebug.trials import Trial
from smdebug.ui.answer_types import VerdictAnswer
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.drawing.pyramid import Pyramid


class ReadRun(Protocol):
    """A run, as far as it was read."""

    @property
    def path(self) -> str: ...
    @property
    def lock(self) -> AbstractContextManager[Any]: ...
    @property
    def version(self) -> int: ...
    @property
    def error(self) -> str: ...
    @property
    def notes(self) -> Mapping[str, str]: ...
    @property
    def trial(self) -> Trial | None: ...
    @property
    def is_known(self) -> bool:
        """Whether there is anything to show: the run is open, or an earlier process has read it."""

    @property
    def charts(self) -> Charts: ...
    @property
    def steps(self) -> list[int]: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def is_listing(self) -> bool: ...
    @property
    def steps_read(self) -> int: ...
    @property
    def steps_checked(self) -> int: ...
    @property
    def workers(self) -> list[str]: ...
    @property
    def issues(self) -> Sequence[Issue]: ...
    @property
    def verdict(self) -> VerdictAnswer: ...
    @property
    def series(self) -> Mapping[str, Pyramid]: ...
    @property
    def kinds(self) -> Mapping[str, Statistics]: ...
    @property
    def missing(self) -> str:
        """Which steps are missing, in words; "" if none are."""

    @property
    def damaged(self) -> Mapping[str, str]: ...
    def order(self, kind: str) -> list[int]:
        """Return the places of a kind's tensors in the order of the network."""
