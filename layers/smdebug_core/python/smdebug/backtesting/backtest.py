"""A question put to all runs at some places, and the table of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smdebug.backtesting.finding_runs import MOST_AHEAD, FoundRun, RunListing
from smdebug.backtesting.journal import Journal, default_journal
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.judging_process import refuse_wrong_values
from smdebug.backtesting.kept_rows import RowWriter
from smdebug.backtesting.labels import Labels
from smdebug.backtesting.pool import JudgingPool, cores
from smdebug.backtesting.question import Question, refuse_wrong_rules
from smdebug.backtesting.rows import Row
from smdebug.exceptions import SMDebugValueError


@dataclass(frozen=True)
class Backtest:
    """The table: a row for each rule on each run, in the order in which the runs are listed."""

    rows: Sequence[Row]
    runs: int
    reused: int = 0
    """The number of runs whose verdicts were known already."""
    compared: int | None = None
    """The number of runs that were compared with the conditions; None if that is not known."""
    remarks: Sequence[str] = ()
    """What is to be said beside the table."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, with all rows in memory."""
        return {**self.about(), "rows": [row.to_dict() for row in self.rows]}

    def about(self) -> dict[str, Any]:
        """As JSON has it, without the rows."""
        return {"runs": self.runs, "reused": self.reused}


@dataclass(frozen=True)
class Options:
    """How to go about it."""

    jobs: int = field(default_factory=cores)
    limit: int | None = None
    """At most so many runs, the first in the order of names."""
    labels: Labels = field(default_factory=Labels)
    journal: Path | None = None
    """The file of the verdicts so far; by default in the user's folder for caches."""
    fresh: bool = False
    """Judge every run anew."""
    progress: Callable[[int, int | None], Any] = lambda done, total: None
    """Is called with the number of runs that are done, and of all, if that is known."""


def backtest(question: Question, places: Sequence[str], options: Options | None = None) -> Backtest:
    """Return what the rules say of all runs at and below the places.

    Verdicts are kept in a journal as they come. If the same rules are asked again, runs that have not changed
    are not judged again: after an interruption, or when some runs were added.
    """
    options = options or Options()
    refuse_wrong_rules(question)
    refuse_wrong_values(question)
    options.labels.refuse_contradictions(places)
    digest = question.digest()
    listing = listing_of(question, places, options.limit)
    pool = JudgingPool(question, max(1, options.jobs))
    judged = RowWriter()
    names: set[str] = set()
    done = 0
    with (
        closing(listing),
        Journal(options.journal or default_journal(digest), digest) as journal,
        closing(pool.judge_each(listing, _nothing if options.fresh else journal.identity_of)) as answers,
        closing(listing),  # before the pool, which waits for it
    ):
        for number, run, verdict in answers:
            done += 1
            names.update(verdict.names)
            if not verdict.is_left_out:
                rows = _kept(journal, run, verdict, options.labels)
                judged.add(number, rows, is_known=verdict.is_known)
                if options.limit is not None and judged.runs >= options.limit:
                    pool.take_no_more()
            options.progress(done, listing.total)
    refuse_unknown(question, names, done)
    runs = judged.runs if options.limit is None else min(judged.runs, options.limit)
    return Backtest(judged.in_order(options.limit), runs, judged.known(options.limit), compared=done)


def listing_of(question: Question, places: Sequence[str], limit: int | None) -> RunListing:
    """Return the runs to judge; of those that satisfy conditions, it is not known how many are needed."""
    if question.selects:
        return RunListing(places, ahead=None if limit is None else MOST_AHEAD)
    return RunListing(places, limit)


def _nothing(location: str) -> str:
    """Return that a run was not judged before."""
    return ""


def _kept(journal: Journal, run: FoundRun, verdict: Judged, labels: Labels) -> tuple[Row, ...]:
    """Return the rows of a run, which are in the journal from now on, unless they may change."""
    if verdict.is_known:
        rows = journal.rows_of(run.location)
    else:
        rows = verdict.rows
        if verdict.identity:
            journal.add(run.location, verdict.identity, rows)
    label = labels.label_of(run, verdict.tags)
    return tuple(row.labelled(label).at(run.path) for row in rows)


def refuse_unknown(question: Question, names: set[str], runs: int) -> None:
    """Raise `SMDebugValueError` for a condition on a name that no run has: it is probably misspelt."""
    for condition in question.where if runs else ():
        if condition.name not in names:
            raise SMDebugValueError(f"No run has a value named {condition.name}.")
