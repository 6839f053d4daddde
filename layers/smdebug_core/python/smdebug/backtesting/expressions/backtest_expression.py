"""An expression put to all runs at some places: their series are read once, and kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from smdebug.backtesting.backtest import Backtest, Options, refuse_unknown
from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import Call, parse
from smdebug.backtesting.expressions.kept_index import KeptColumn, KeptIndex
from smdebug.backtesting.expressions.verdicts import ColumnsOfRun, read_keys, verdicts
from smdebug.backtesting.finding_runs import RunListing
from smdebug.backtesting.pool import JudgingPool
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row, despite
from smdebug.storage import open_storage


class ReadRun(NamedTuple):
    """What is known of a run before the expression is computed: its columns, or rows that say why not."""

    path: str
    label: str
    columns: ColumnsOfRun | None
    unread: tuple[Row, ...] = ()
    left_out: tuple[str, ...] = ()


def backtest_expression(
    text: str, question: Question, places: Sequence[str], options: Options | None = None
) -> Backtest:
    """Return where the expression holds, for all runs at and below the places.

    The series that it names are kept in a file: `options.journal`, or else one in the user's folder for
    caches. The next expression reads them there, and from a run only what is new.
    """
    options = options or Options()
    condition = parse(text)
    keys = read_keys(condition)
    index = KeptIndex(options.journal or default_index(places))
    kept = {} if options.fresh else {key: column for key in keys if (column := index.column(key))}
    listing = RunListing(places, None if question.selects else options.limit)
    pool = JudgingPool(replace(question, series=keys), max(1, options.jobs))
    found: dict[int, ReadRun] = {}
    changed: dict[str, dict[str, tuple[str, Values]]] = {key: {} for key in keys}
    names: set[str] = set()
    reused = done = 0

    def known(location: str) -> str:
        return _identity(kept, location) if len(kept) == len(keys) else ""

    with closing(listing), closing(pool.judge_each(listing, known)) as answers, closing(listing):
        for at, run, verdict in answers:
            done += 1
            names.update(verdict.names)
            if not verdict.is_left_out:
                columns: ColumnsOfRun | None = None
                if verdict.is_known:
                    reused += 1
                    columns = {key: kept[key].of(run.location) for key in keys}
                elif verdict.columns:
                    columns = {key: Values.decoded(each) for key, each in verdict.columns.items()}
                    for key, values in columns.items():
                        if verdict.identity:
                            changed[key][run.location] = (verdict.identity, values)
                label = options.labels.label_of(run, verdict.tags)
                found[at] = ReadRun(run.path, label, columns, verdict.rows, verdict.left_out)
                if options.limit is not None and len(found) >= options.limit:
                    pool.take_no_more()
            options.progress(done, listing.total)
    if any(changed.values()):
        index.keep(changed)
    refuse_unknown(question, names, done)
    chosen = [found[at] for at in sorted(found)[: options.limit]]
    return Backtest(_rows(condition, chosen), runs=len(chosen), reused=reused)


def _rows(condition: Call, answers: Sequence[ReadRun]) -> tuple[Row, ...]:
    with_columns = [(answer.path, answer.columns) for answer in answers if answer.columns is not None]
    computed = iter(verdicts(condition, with_columns))
    rows = []
    for answer in answers:
        own = [replace(row, rule=condition.text) for row in answer.unread]
        if answer.columns is not None:
            own = [despite(next(computed), answer.left_out)]
        rows += [row.labelled(answer.label).at(answer.path) for row in own]
    return tuple(rows)


def default_index(places: Sequence[str]) -> Path:
    """Return the file of the series of these places in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    locations = sorted(open_storage(place).location for place in places)
    digest = hashlib.sha256("\n".join(locations).encode()).hexdigest()
    return Path(base) / "smdebug" / "backtests" / f"{digest[:32]}.npz"


def _identity(kept: dict[str, KeptColumn], location: str) -> str:
    """Return what the run was when its columns were read; empty unless that was at one time."""
    places = [(column, column.place_of.get(location)) for column in kept.values()]
    identities = {"" if at is None else column.identities[at] for column, at in places}
    return identities.pop() if len(identities) == 1 else ""
