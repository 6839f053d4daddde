"""Which series of an expression no run has: probably a name is misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smdebug.backtesting.expressions.verdicts import ColumnsOfRun, name_of
from smdebug.exceptions import SMDebugError
from smdebug.plain_text import did_you_mean
from smdebug.runs.metrics import METRICS
from smdebug.runs.opening import open_run
from smdebug.runs.tensors import every_name
from smdebug.runs.training_loss import loss_names, losses_first

_OPENED = 3
"""Runs whose names are shown."""
_SHOWN = 8


class MissingSeries:
    """Notes of each run that was read which of the series it has."""

    def __init__(self, keys: Sequence[str]):
        self._missing = list(keys)
        self._paths: list[str] = []

    def note(self, path: str, columns: ColumnsOfRun) -> None:
        """Note the columns of a run."""
        self._missing = [key for key in self._missing if not len(columns[key].steps)]
        if len(self._paths) < _OPENED:
            self._paths.append(path)

    def in_words(self) -> Sequence[str]:
        """Return a sentence for each series that no run has: which name is near, and which there are."""
        if not self._missing or not self._paths:
            return ()
        series, tensors = _names_in(self._paths)
        return tuple(_sentence(key, series, tensors) for key in self._missing)


def _sentence(key: str, series: Sequence[str], tensors: Sequence[str]) -> str:
    kind, _, name = key.partition(":")
    wanted, names = (name, series) if kind == "series" else (name.partition(":")[2], tensors)
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    there_are = f" There are {', '.join(names[:_SHOWN])}{more}." if names else ""
    return f"No run has the {name_of(key)}.{did_you_mean(wanted, names)}{there_are}"


def _names_in(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of series, and those of everything that has statistics."""
    series: set[str] = set()
    tensors: set[str] = set()
    for path in paths:
        try:
            trial = open_run(path)
            series.update(trial.observations.series_names(), loss_names(trial))
            series.update(trial.tensor_names(collection=METRICS))
            tensors.update(every_name(trial))
        except (SMDebugError, OSError):  # it has gone since
            continue
    return losses_first(series), losses_first(tensors)
