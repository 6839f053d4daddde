"""A backtest in the account: planned here, judged there, and its verdicts collected into the same table.

Verdicts go into the journal of local backtests. What has none when an execution ends is planned anew by the
next call, so a backtest that was cancelled, killed or out of budget continues without judging a run twice.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from smdebug.backtesting.backtest import Backtest, Options, refuse_unknown
from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.deployed.plan import (
    MOST_RUNS,
    Capacity,
    Chunk,
    Estimate,
    PlannedRun,
    chunks_of,
    estimate,
    refuse_expensive,
    refuse_slowing,
    rows_folder,
    rules_counted,
    seconds_for_run,
)
from smdebug.backtesting.deployed.task import Task, bundles_in, read_task, verdicts_in, write_task
from smdebug.backtesting.finding_runs import FoundRun, find_runs
from smdebug.backtesting.identity import identity_of, within
from smdebug.backtesting.journal import Journal, default_journal
from smdebug.backtesting.judging import Judged, selection_of, tags_of
from smdebug.backtesting.judging_process import refuse_wrong_values
from smdebug.backtesting.kept_rows import RowWriter
from smdebug.backtesting.question import Question, names_of, refuse_wrong_rules
from smdebug.backtesting.rows import Row, unread_row
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.files.names import INDEX_FOLDER
from smdebug.service.backtests import SUCCEEDED, Account, Execution
from smdebug.storage import open_storage

_THREADS = 16
_NO_NIGHT = ": a day whose runs would cost more than nightly_budget has none, nor has a day without runs"
BUDGET = 5.0
"""Dollars."""


@dataclass(frozen=True)
class DeployedOptions:
    """How to go about it, besides the options of every backtest."""

    budget: float = BUDGET
    """Dollars: a plan that costs more is refused, and no chunk is begun once they are spent."""
    is_dry: bool = False
    """Whether to estimate only."""
    may_slow_live_runs: bool = False
    """Whether to start in an account so small that live runs are slowed down meanwhile."""
    pause: Callable[[], Any] = field(default=lambda: time.sleep(2))
    """Waits until the execution is looked at again."""
    begun: Callable[[str, Estimate], Any] = lambda name, estimated: None
    """Is called before a backtest is started."""


def backtest_in_account(
    question: Question,
    places: Sequence[str],
    account: Account,
    options: Options | None = None,
    deployed: DeployedOptions | None = None,
) -> Backtest | Estimate:
    """Return what the rules say of all runs at and below the places, judged by the deployed application.

    With `is_dry`, return what it would take.
    """
    options, deployed = options or Options(), deployed or DeployedOptions()
    refuse_wrong_rules(question)
    refuse_wrong_values(question)
    _refuse_elsewhere(places, account)
    options.labels.refuse_contradictions(places)
    digest = question.digest()
    file = options.journal or default_journal(digest)
    with Journal(file, digest) as journal:
        verdicts = _Verdicts(journal, seconds_for_run(question), is_fresh=options.fresh)
        begun = Begun(file.with_name(f"{file.name}.deployed"))
        if (earlier := begun.id) and account.execution(earlier) is not None:
            if not deployed.is_dry:
                _follow(account, earlier, deployed, options)
            verdicts.take(account, earlier)
        runs = _looked_at(question, places, options.limit)
        for each in runs:
            verdicts.reuse(each.run, each.identity)
        bundles = bundles_in(account.bucket)
        missing = [
            PlannedRun(each.run, each.steps, bundle_name(each.run.location) in bundles, each.identity)
            for each in runs
            if verdicts.lacks(each.run)
        ]
        rules = rules_counted(question)
        task = Task.of(question, deployed.budget)
        chunks = chunks_of(missing, rules, custom=task.is_custom)
        capacity = Capacity.from_dict(account.capacity)
        estimated = estimate(chunks, rules, capacity, custom=task.is_custom)
        if deployed.is_dry:
            return estimated
        ended: Execution | None = None
        if chunks:
            refuse_expensive(estimated, deployed.budget)
            if not deployed.may_slow_live_runs:
                refuse_slowing(capacity)
            rounds = _Rounds(account, begun, verdicts, rules, capacity, deployed, options)
            ended = rounds.judge(task, missing, chunks, digest)
        return _table(question, runs, verdicts, options, ended)


@dataclass(frozen=True)
class _Rounds:
    """Executions until every run has its verdict: one run on which a rule hangs takes the time of others."""

    account: Account
    begun: Begun
    verdicts: _Verdicts
    rules: int
    capacity: Capacity
    deployed: DeployedOptions
    options: Options

    def judge(
        self, task: Task, missing: Sequence[PlannedRun], chunks: Sequence[Chunk], digest: str
    ) -> Execution:
        """Judge the runs, first in these chunks; return the last execution. All share the first budget."""
        while True:
            name = self.begun.new(digest)
            ended = self._judge_once(name, task, chunks)
            left = [each for each in missing if self.verdicts.lacks(each.run)]
            if not left or len(left) == len(missing) or ended.status != SUCCEEDED:
                return ended
            missing, task = left, replace(task, purse=task.purse or name)
            chunks = chunks_of(missing, self.rules, custom=task.is_custom)

    def _judge_once(self, name: str, task: Task, chunks: Sequence[Chunk]) -> Execution:
        rules = self.rules
        priced = [(chunk, _price(chunk, rules, self.capacity, task)) for chunk in chunks]
        write_task(self.account.bucket, name, task, priced)
        self.begun.keep(name)
        self.deployed.begun(name, estimate(chunks, rules, self.capacity, custom=task.is_custom))
        self.account.start(name)
        ended = _follow(self.account, name, self.deployed, self.options)
        self.verdicts.take(self.account, name)
        return ended


def collect(account: Account, id: str, options: Options) -> Backtest:
    """Return the table of a backtest that the application started by itself, as far as it has come."""
    if account.execution(id) is None:
        raise SMDebugValueError(f"There is no backtest {id}{_NO_NIGHT if id.startswith('nightly-') else ''}")
    rows = RowWriter()
    for run, judged, tags in _with_tags(account, id):
        label = options.labels.label_of(run, tags)
        rows.add(rows.runs, (row.labelled(label) for row in judged.rows))
    return Backtest(rows.in_order(), runs=rows.runs)


def _with_tags(account: Account, id: str) -> Iterator[tuple[FoundRun, Judged, tuple[str, ...]]]:
    """Yield the verdicts of a backtest with the tags of each run, which the sandbox does not say."""
    verdicts = verdicts_in(account.bucket, id)
    if not read_task(account.bucket, id).is_custom:
        yield from ((run, judged, judged.tags) for run, judged in verdicts)
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        while some := list(islice(verdicts, 16 * _THREADS)):  # a million are never in memory together
            tags = threads.map(lambda each: tags_of(open_storage(each[0].path)), some)
            yield from ((run, judged, found) for (run, judged), found in zip(some, tags, strict=True))


class Begun:
    """The backtest that was started last, in a file beside the journal: it goes on without this process."""

    def __init__(self, file: Path):
        self._file = file

    @property
    def id(self) -> str:
        """Its id; empty if there is none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(self._file.read_text(encoding="utf-8"))["id"])
        return ""

    def new(self, digest: str) -> str:
        """Return an id that no backtest had."""
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        return f"{moment}-{digest[:8]}-{secrets.token_hex(3)}"

    def keep(self, id: str) -> None:
        self._file.write_text(json.dumps({"id": id}), encoding="utf-8")


def cancel(question: Question, account: Account, journal: Path | None = None) -> str:
    """Stop the backtest of this question that is running; return its id, empty if none is."""
    digest = question.digest()
    file = journal or default_journal(digest)
    name = Begun(file.with_name(f"{file.name}.deployed")).id
    execution = account.execution(name) if name else None
    if execution is None or not execution.is_running:
        return ""
    account.stop(name)
    return name


class _Verdicts:
    """What was judged: by name what is in the journal, and with its rows what is not."""

    def __init__(self, journal: Journal, seconds: float, *, is_fresh: bool):
        """A run had `seconds` for its verdict."""
        self._journal = journal
        self._seconds = seconds
        self._is_fresh = is_fresh
        self._in_journal: set[str] = set()
        self._others: dict[str, Judged] = {}
        self.reused: set[str] = set()

    def take(self, account: Account, id: str) -> None:
        """Take over the verdicts of a backtest."""
        for run, judged in verdicts_in(account.bucket, id):
            self._forget(run)
            if not judged.identity or not judged.rows:
                self._others[run.location] = judged
                continue
            known = self._journal.identity_of(run.location), self._journal.rows_of(run.location)
            if (judged.identity, judged.rows) != known:
                self._journal.add(run.location, judged.identity, judged.rows)
            self._in_journal.add(run.location)

    def reuse(self, run: FoundRun, identity: str) -> None:
        """Take the verdict from the journal if the run is as it was."""
        known = self._journal.identity_of(run.location)
        if identity and not self._is_fresh and known in (identity, within(identity, self._seconds)):
            self._forget(run)
            self._in_journal.add(run.location)
            self.reused.add(run.location)
        elif identity and (
            run.location in self._in_journal or self._others.get(run.location, Judged()).identity
        ):
            self._forget(run)  # it has changed since

    def lacks(self, run: FoundRun) -> bool:
        """Whether the run is still to be judged."""
        return run.location not in self._in_journal and run.location not in self._others

    def rows_of(self, run: FoundRun) -> tuple[Row, ...]:
        """Return the verdicts on a run that has them."""
        other = self._others.get(run.location)
        return self._journal.rows_of(run.location) if other is None else other.rows

    def _forget(self, run: FoundRun) -> None:
        self._in_journal.discard(run.location)
        self._others.pop(run.location, None)


def _refuse_elsewhere(places: Sequence[str], account: Account) -> None:
    own = account.bucket.location.rstrip("/")
    for place in places:
        if place.rstrip("/") != own and not place.startswith(f"{own}/"):
            raise SMDebugValueError(
                f"{place} is not in {own}: the deployed application reads its own bucket only. "
                "Backtest other places without --deployed"
            )


@dataclass(frozen=True)
class _Looked:
    """A run before it is judged."""

    run: FoundRun
    steps: int = 0
    identity: str = ""
    selection: Judged = field(default_factory=Judged)


def _looked_at(question: Question, places: Sequence[str], limit: int | None) -> list[_Looked]:
    """Return the runs that satisfy the conditions, in the order of names."""
    most = MOST_RUNS if question.selects or limit is None else min(limit, MOST_RUNS)
    found = list(islice(find_runs(places), most + 1))
    if len(found) > MOST_RUNS:
        raise SMDebugValueError(
            f"There are more than {MOST_RUNS:,} runs: name prefixes with fewer, or use --limit"
        )
    with ThreadPoolExecutor(_THREADS) as threads:
        looked = list(threads.map(lambda run: _look(question, run), found[:most]))
    refuse_unknown(question, {name for each in looked for name in each.selection.names}, len(looked))
    return [each for each in looked if not each.selection.is_left_out][:limit]


def _look(question: Question, run: FoundRun) -> _Looked:
    """Look at a run; of one that cannot be read nothing is known, and its row will say so."""
    try:
        storage = open_storage(run.path)
        selection = selection_of(question, run, storage)
        if selection.is_left_out:
            return _Looked(run, selection=selection)
        steps = sum(1 for _ in storage.list(INDEX_FOLDER))
        return _Looked(run, steps, identity_of(storage), selection)
    except (SMDebugError, OSError):
        return _Looked(run)


def _price(chunk: Chunk, rules: int, capacity: Capacity, task: Task) -> float:
    return chunk.work(rules).dollars(capacity.memory_mb, custom=task.is_custom)


def _follow(account: Account, id: str, deployed: DeployedOptions, options: Options) -> Execution:
    """Wait until the execution has ended; say how many chunks have their verdicts."""
    seen = 0
    while True:
        execution = account.execution(id)
        chunks = sum(1 for _ in account.bucket.list(rows_folder(id)))
        for _ in range(chunks - seen):
            options.progress(seen, None)
        seen = max(seen, chunks)
        if execution is None or not execution.is_running:
            return execution or Execution(SUCCEEDED)
        deployed.pause()


def _table(
    question: Question,
    runs: Sequence[_Looked],
    verdicts: _Verdicts,
    options: Options,
    ended: Execution | None,
) -> Backtest:
    why = ended.problem if ended is not None and ended.problem else "the function had no time left"
    note = f"not judged yet ({why}); call the command again"
    rows = RowWriter()
    for number, looked in enumerate(runs):
        run = looked.run
        if verdicts.lacks(run):
            found = tuple(unread_row(run.path, note, rule=name) for name in names_of(question.rules))
        else:
            found = verdicts.rows_of(run)
        label = options.labels.label_of(run, looked.selection.tags)
        rows.add(number, (row.labelled(label).at(run.path) for row in found))
    return Backtest(rows.in_order(), runs=len(runs), reused=len(verdicts.reused))
