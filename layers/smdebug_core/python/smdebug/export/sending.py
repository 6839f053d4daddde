"""A saved run sent to another tool: its numbers, its problems, its diagnosis and its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, Literal, NamedTuple

from smdebug.diagnosis.issues import Issue
from smdebug.exceptions import SinkError
from smdebug.export.logged_files import logged_files
from smdebug.export.run_numbers import DEFAULT_STATISTICS, RunNumbers
from smdebug.export.run_records import diagnosis_record, issue_records, run_record, unknown_to
from smdebug.export.selection import Selection, nothing_exported, opened
from smdebug.runs.evaluation.following import Following
from smdebug.sinks.names import Names
from smdebug.sinks.records import IssueRecord, NumbersRecord, Record, ReportRecord
from smdebug.sinks.sink import KINDS, RunSink, SinkChoice
from smdebug.sinks.targets import sink_for
from smdebug.trials import Trial

Stage = Literal["numbers", "rules", "report"]
StageProgress = Callable[[Stage, int | None], Callable[[int], object]]
_BATCH = 10_000
_STEPS_AT_ONCE = 20
_LONGEST_NAME = 200


class Sent(NamedTuple):
    """How much was sent."""

    numbers: int
    problems: int


def send_run(
    run: str | os.PathLike[str] | Trial,
    sink: RunSink,
    selection: Selection | None = None,
    *,
    statistics: Sequence[str] = (),
    with_rules: bool = True,
    found_elsewhere: Sequence[Issue] = (),
    progress: StageProgress = lambda stage, total: lambda done: None,
) -> Sent:
    """Send a saved run to a sink; return how much was sent.

    With rules, those of the run and the default rules are evaluated, and what they find is sent: each problem
    when it was opened and when it was resolved, then the diagnosis. Tools that keep files get the report, and
    the images, texts and others that the training has logged. `found_elsewhere` is what rules have found that
    are not known here; it is sent as well, unless the rules here find the same.
    A sink that fails raises `SinkError`; a run of its own that it began is then marked as incomplete. A tool
    that has the run already raises `AlreadySent`.
    """
    trial = opened(run)
    selection = selection or Selection(skips_damaged=True)
    numbers = RunNumbers(trial, selection, statistics=statistics or DEFAULT_STATISTICS)
    selection.names(trial, or_observed=True)  # raises if nothing is selected
    count = problems = 0
    sink.begin(run_record(trial))
    try:
        for batch in _batches(_with_progress(numbers, selection.steps_of(trial), progress)):
            sink.send(batch)
            count += sum(len(record) for record in batch)
        if not count:
            raise nothing_exported(trial)
        for file in logged_files(selection.logged(trial)):
            sink.send([file])
        if with_rules:
            records = _found(trial, found_elsewhere, progress)
            problems = len({item.key for item in records if isinstance(item, IssueRecord)})
            sink.send(records)
        sink.end()
    except BaseException:
        with suppress(SinkError):
            sink.end(is_complete=False)
        raise
    return Sent(count, problems)


def file_sink(form: str, file: str, stdout: IO[str]) -> RunSink:
    """Return the sink that writes lines to a file, which appears once complete, or to `stdout` for `-`."""
    return sink_for(SinkChoice(form, file), whole=True, stdout=stdout)


def file_name(form: str, location: str) -> str:
    """Return a name for the file of the run at this address, which no other run has."""
    allowed = Names(r"[^A-Za-z0-9_.\-]+", _LONGEST_NAME).allowed(location.removeprefix("s3://"))
    return f"{allowed}.{KINDS[form].ending}"


def tool_sink(form: str, target: str = "", run_id: str | None = None, *, event: str = "") -> RunSink:
    """Return the sink of a tool; with `run_id`, that run of the tool gets all numbers.

    MLflow and W&B have one run for an `event`, however often it is sent.
    """
    options: dict[str, Any] = {} if run_id is None else {"run_id": run_id, "with_values": True}
    if event and KINDS[form].knows_events:
        options["event"] = event
    return sink_for(SinkChoice(form, target), **options)


def _with_progress(
    numbers: RunNumbers, steps: Sequence[int], progress: StageProgress
) -> Iterator[NumbersRecord]:
    advance = progress("numbers", len(steps))

    def over(chosen: Iterable[int]) -> Iterator[int]:
        for step in chosen:
            yield step
            advance(1)

    yield from numbers.new(progress=over)
    yield from numbers.rest()


def _batches(records: Iterable[NumbersRecord]) -> Iterator[list[NumbersRecord]]:
    batch: list[NumbersRecord] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _found(trial: Trial, found_elsewhere: Sequence[Issue], progress: StageProgress) -> list[Record]:
    """Evaluate the rules; return what they found, in order, and what only others have found."""
    from smdebug.reports.writing import page_of_results

    following = Following(trial)
    advance = progress("rules", len(trial.steps()))
    records: list[Record] = []
    while True:
        before = following.last_step
        records += issue_records(following.advance(most_steps=_STEPS_AT_ONCE, progress=advance))
        if following.last_step == before:
            break
    others = unknown_to(following.issues, found_elsewhere)
    records += [IssueRecord("opened", issue.since, issue) for issue in others]
    records.append(diagnosis_record(following, others))
    progress("report", None)
    records.append(ReportRecord(page_of_results(trial, following.results)))
    return records


__all__ = ["KINDS", "Sent", "Stage", "file_name", "file_sink", "send_run", "tool_sink"]
