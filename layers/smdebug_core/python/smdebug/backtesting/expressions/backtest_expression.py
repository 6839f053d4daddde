"""An expression put to all runs at some places: their series are read once, and kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from smdebug.backtesting.backtest import Backtest, Options, listing_of, refuse_unknown
from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import Call, parse
from smdebug.backtesting.expressions.kept_index import KeptIndex
from smdebug.backtesting.expressions.missing_series import MissingSeries
from smdebug.backtesting.expressions.verdicts import ColumnsOfRun, read_keys, verdicts
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.kept_rows import RowWriter
from smdebug.backtesting.pool import JudgingPool
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row, despite
from smdebug.storage import open_storage

_AT_ONCE = 1 << 22
"""Numbers of series in memory, of 16 bytes each: windows do not cross runs."""
_BESIDES = 64
"""What a run has in memory besides, as so many numbers."""


class ReadRun(NamedTuple):
    """A run whose expression is not computed yet."""

    number: int
    path: str
    label: str
    columns: ColumnsOfRun
    left_out: tuple[str, ...]
    is_known: bool = False

    def size(self) -> int:
        return _BESIDES + sum(len(values.steps) for values in self.columns.values())


def backtest_expression(
    text: str, question: Question, places: Sequence[str], options: Options | None = None
) -> Backtest:
    """Return where the expression holds, for all runs at and below the places.

    The series that it names are kept in a file: `options.journal`, or else one in the user's folder for
    caches. The next expression reads them there, and from a run only what is new. In memory are those of some
    runs at a time.
    """
    options = options or Options()
    condition = parse(text)
    keys = read_keys(condition)
    options.labels.refuse_contradictions(places)
    listing = listing_of(question, places, options.limit)
    pool = JudgingPool(replace(question, series=keys), max(1, options.jobs))
    computed = Computed(condition)
    missing = MissingSeries(keys)
    names: set[str] = set()
    done = 0

    with (
        closing(listing),
        closing(KeptIndex(options.journal or default_index(places))) as index,
        closing(pool.judge_each(listing, _known_to(index, keys, is_fresh=options.fresh))) as answers,
        closing(listing),
    ):
        for number, run, verdict in answers:
            done += 1
            names.update(verdict.names)
            if not verdict.is_left_out:
                label = options.labels.label_of(run, verdict.tags)
                columns = _columns(index, keys, run, verdict)
                if columns is None:
                    computed.leave(number, run.path, label, verdict.rows)
                else:
                    missing.note(run.path, columns)
                    computed.add(
                        ReadRun(number, run.path, label, columns, verdict.left_out, verdict.is_known)
                    )
                if options.limit is not None and computed.runs >= options.limit:
                    pool.take_no_more()
            options.progress(done, listing.total)
    refuse_unknown(question, names, done)
    runs = computed.runs if options.limit is None else min(computed.runs, options.limit)
    rows, known = computed.in_order(options.limit), computed.known(options.limit)
    return Backtest(rows, runs, known, compared=done, remarks=missing.in_words())


def _known_to(index: KeptIndex, keys: Sequence[str], *, is_fresh: bool) -> Callable[[str], str]:
    return lambda location: "" if is_fresh else index.identity_of(location, keys)


def _columns(index: KeptIndex, keys: Sequence[str], run: FoundRun, verdict: Judged) -> ColumnsOfRun | None:
    """Return the columns of a run, which the index has from now on; None if it could not be read."""
    if verdict.is_known:
        return index.columns_of(run.location, keys)
    if not verdict.columns:
        return None
    columns = {key: Values.decoded(each) for key, each in verdict.columns.items()}
    if verdict.identity:
        index.keep(run.location, verdict.identity, columns)
    return columns


class Computed:
    """The rows of runs as they come: an expression is computed for some of them at a time."""

    def __init__(self, condition: Call):
        self._condition = condition
        self._rows = RowWriter()
        self._waiting: list[ReadRun] = []
        self._size = 0

    @property
    def runs(self) -> int:
        """The number of runs so far."""
        return self._rows.runs + len(self._waiting)

    def leave(self, number: int, path: str, label: str, unread: Iterable[Row]) -> None:
        """Add a run that could not be read: its rows say why."""
        rows = (replace(row, rule=self._condition.text) for row in unread)
        self._rows.add(number, (row.labelled(label).at(path) for row in rows))

    def add(self, run: ReadRun) -> None:
        """Add a run; its expression is computed when there are enough."""
        self._waiting.append(run)
        self._size += run.size()
        if self._size >= _AT_ONCE:
            self._compute()

    def in_order(self, limit: int | None) -> Sequence[Row]:
        """Return the rows in the order of the runs, of the first so many runs. No more can be added."""
        self._compute()
        return self._rows.in_order(limit)

    def known(self, limit: int | None) -> int:
        """Return how many of the first so many runs had not to be read again."""
        return self._rows.known(limit)

    def _compute(self) -> None:
        runs, self._waiting, self._size = self._waiting, [], 0
        rows = verdicts(self._condition, [(run.path, run.columns) for run in runs])
        for run, row in zip(runs, rows, strict=True):
            row = despite(row, run.left_out).labelled(run.label)
            self._rows.add(run.number, [row], is_known=run.is_known)


def default_index(places: Sequence[str]) -> Path:
    """Return the file of the series of these places in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    locations = sorted(open_storage(place).location for place in places)
    digest = hashlib.sha256("\n".join(locations).encode()).hexdigest()
    return Path(base) / "smdebug" / "backtests" / f"{digest[:32]}.db"
