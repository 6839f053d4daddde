"""A question put to runs: a chunk of runs in, their verdicts out. It knows no process, journal or page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smdebug.backtesting.bundles.bundled_run import bundled, keep_bundle
from smdebug.backtesting.expressions.columns import read_columns
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.identity import identity_of, within
from smdebug.backtesting.question import Question, names_of
from smdebug.backtesting.rows import FAILED, Row, despite, first_difference, row_of, unread_row
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.runs.conditions import key_of
from smdebug.runs.evaluation.evaluating import RuleResult, evaluate
from smdebug.runs.left_out import left_out_of
from smdebug.runs.listing import listed_run
from smdebug.runs.opening import open_run
from smdebug.secrets.texts import redacted_line
from smdebug.storage import Storage, open_storage
from smdebug.trials import Trial
from smdebug.trials.origin_reading import read_origin

_VANISHED = "the run was deleted while it was judged"


@dataclass(frozen=True)
class Judged:
    """What was found out about one run."""

    rows: tuple[Row, ...] = ()
    identity: str = ""
    """What the rows are about; empty if they are to be made anew next time."""
    tags: tuple[str, ...] = ()
    is_left_out: bool = False
    """Whether the run does not satisfy the conditions."""
    is_known: bool = False
    """Whether the run is as it was when it was judged before, so that it was not judged again."""
    names: tuple[str, ...] = field(default=())
    """Those of the conditions' names that the run has."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The columns that were asked for, encoded."""
    left_out: tuple[str, ...] = ()
    """The files that the columns lack."""
    bundle_problem: str = ""
    """What is wrong with the bundle of the run, which was therefore read without it."""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "rows": [row.to_dict() for row in self.rows]}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Judged:
        lists = {name: tuple(payload.get(name, ())) for name in ("tags", "names", "left_out")}
        return cls(**{**payload, **lists, "rows": tuple(map(Row.from_dict, payload["rows"]))})


def judge_each(question: Question, runs: Iterable[tuple[FoundRun, str]]) -> Iterator[Judged]:
    """Yield what the rules say of each run; with it comes its identity when it was judged before, or ""."""
    for run, known in runs:
        yield judge(question, run, known)


def judge(question: Question, run: FoundRun, known: str = "", *, selected: Judged | None = None) -> Judged:
    """Return what the rules say of the run, whatever its state; `selected` if that was decided before."""
    try:
        storage = open_storage(run.path)
        selection = selection_of(question, run, storage) if selected is None else selected
        if selection.is_left_out:
            return selection
        files = storage
        if question.bundles:
            storage = bundled(storage, open_storage(question.bundles), keeps=question.keeps_bundles)
        identity = identity_of(storage)
        if known in (identity, within(identity, question.timeout)):
            return replace(selection, identity=known, is_known=True)
        trial = open_run(storage if question.bundles else run.path)
    except (SMDebugError, OSError) as error:
        return Judged((unread_row(run.path, redacted_line(error)),))
    if question.series:
        columns = {key: each.encoded() for key, each in read_columns(trial, question.series).items()}
        left_out = tuple(gap.file for gap in left_out_of(trial))
        return replace(selection, columns=columns, left_out=left_out, identity="" if left_out else identity)
    rows = _rows(question, run, trial)
    left_out = tuple(gap.file for gap in left_out_of(trial))
    if left_out and _has_vanished(files):
        rows = [row if row.fires else unread_row(run.path, _VANISHED, rule=row.rule) for row in rows]
        return replace(selection, rows=tuple(rows))
    rows = [despite(row, left_out) for row in rows]
    is_whole = not trial.damaged_files and all(row.status != FAILED or row.looked for row in rows)
    problem = keep_bundle(storage)
    return replace(selection, rows=tuple(rows), identity=identity if is_whole else "", bundle_problem=problem)


def selection_of(question: Question, run: FoundRun, storage: Storage) -> Judged:
    """Return whether the run satisfies the conditions, and its tags."""
    if question.selects:
        listed = listed_run(run.path, run.name)
        if listed.state == "unreadable":
            raise MissingCollectionFiles(listed.error)
        facts = listed.facts()
        names = tuple(each.name for each in question.where if key_of(each.name, facts) is not None)
        saved = listed.saved_at
        is_old = question.since is not None and (saved is None or saved.timestamp() < question.since)
        if is_old or not all(condition.matches(facts) for condition in question.where):
            return Judged(is_left_out=True, names=names)
        return Judged(tags=listed.origin.tags, names=names)
    return Judged(tags=tags_of(storage))


def tags_of(storage: Storage) -> tuple[str, ...]:
    """Return the tags of a run; none if they cannot be read, as no verdict depends on them."""
    try:
        origin = read_origin(storage)
    except SMDebugError:
        return ()
    return () if origin is None else origin.tags


def _has_vanished(storage: Storage) -> bool:
    """Whether nothing is left of a run that was there."""
    try:
        return next(iter(storage.list(COLLECTIONS_FOLDER)), None) is None
    except SMDebugError:
        return False


def _rows(question: Question, run: FoundRun, trial: Trial) -> list[Row]:
    has_ended = trial.loaded_all_steps
    try:
        results = _results(question, trial, question.file)
        rows = [row_of(run.path, result, has_ended=has_ended) for result in results]
        if question.against is None:
            return rows
        before = {each.name: each for each in _results(question, trial, question.against)}
    except SMDebugError as error:
        return [unread_row(run.path, redacted_line(error), FAILED, name) for name in names_of(question.rules)]
    return [
        replace(
            row,
            changed=first_difference(result, before[result.name]),
            status_before=before[result.name].status.value,
        )
        for row, result in zip(rows, results, strict=True)
    ]


def _results(question: Question, trial: Trial, file: str | None) -> list[RuleResult]:
    """Evaluate the rules as `smdebug evaluate` does; this process is the one of the rule's own."""
    return evaluate(trial, question.rules, file=file, jobs=1, own_process=False)
