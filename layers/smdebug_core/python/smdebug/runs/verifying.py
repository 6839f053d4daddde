"""Verify a run: every checksum and every index entry against the bytes in its files."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from math import prod
from typing import Any, NamedTuple

from smdebug.exceptions import DamagedFile, MissingCollectionFiles, ObjectMissing, SMDebugError
from smdebug.files.collections_file import ClosingNote, parse_collections, whole_number
from smdebug.files.event_reading import read_record, record_spans
from smdebug.files.index import IndexFile, parse_index
from smdebug.files.names import (
    ANNOTATIONS,
    CHECKPOINTS,
    COLLECTIONS_FOLDER,
    END_MARKER,
    EVENTS_FOLDER,
    INDEX_FOLDER,
    LOGGED_CATALOGS,
    ORIGIN,
    StepFile,
    collections_worker,
    index_key,
    step_file,
)
from smdebug.runs.opening import open_run, refuse_a_file
from smdebug.runs.unindexed import (
    Workers,
    missing_of,
    missing_step_problems,
    not_indexed,
    saved_steps,
)
from smdebug.runs.verification import Problem, Verification
from smdebug.storage import Storage, open_storage
from smdebug.trials.checkpoint_reading import read_checkpoints
from smdebug.trials.logged_reading import read_catalogs
from smdebug.trials.origin_reading import read_annotations, read_origin
from smdebug.trials.stored.attempts import AttemptId, Attempts
from smdebug.trials.stored.missing_steps import Worked

_AT_A_TIME = 256
_FRAME_START, _FRAME_END = (
    12,
    4,
)  # around a payload: its length with a checksum before, a footer after


class _Seen(NamedTuple):
    """The verification of one index file and the event file that it points to."""

    event_file: str | None = None
    records: int = 0
    checksummed: int = 0
    bytes: int = 0
    problems: tuple[Problem, ...] = ()
    extras: Mapping[str, Any] | None = None  # entries of `meta`; None if it cannot be read


def verify(
    path: str | os.PathLike[str] | Storage,
    *,
    quick: bool = False,
    progress: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> Verification:
    """Check that every file of a run can be read, and that every index entry has its record.

    Each record is compared with the checksums in its frame and with the CRC32C in its index file; `quick`
    reads no records and only checks that their files are large enough. At most as many event files as the
    storage reads at a time are in memory.
    """
    storage = open_storage(path)
    if isinstance(path, str | os.PathLike):
        refuse_a_file(path)
    unfit, workers = _collections(storage)
    unfit += _notes(storage)
    ended = storage.exists(END_MARKER)
    keys = list(storage.list(INDEX_FOLDER))
    problems, notes = list(unfit), []
    counts = Counter[str]()
    pointed_at: set[str] = set()
    by_step: defaultdict[int, set[str]] = defaultdict(set)
    extras: dict[StepFile, Mapping[str, Any]] = {}
    unreadable: set[StepFile] = set()
    for key, seen in _in_turn(storage, progress(keys), lambda key: _index_file(storage, key, quick)):
        problems += [problem for problem in seen.problems if not problem.harmless]
        notes += [problem for problem in seen.problems if problem.harmless]
        counts.update(records=seen.records, checksummed=seen.checksummed, bytes=seen.bytes)
        if seen.event_file:
            pointed_at.add(seen.event_file)
        named = step_file(key)
        if named:
            by_step[named.step].add(named.worker)
            extras[named] = seen.extras or {}
            if seen.extras is None:
                unreadable.add(named)
    events = list(storage.list(EVENTS_FOLDER))
    readable = {named: extras[named] for named in extras.keys() - unreadable}
    at = saved_steps(readable)
    attempts = Attempts(at, workers.newest, ended=ended)
    missing = missing_of(storage, at, attempts, unreadable, workers, ended)
    unindexed = list(not_indexed(events, pointed_at, extras, missing, workers, ended))
    problems += [problem for problem in unindexed if not problem.harmless]
    notes += [problem for problem in unindexed if problem.harmless]
    problems += missing_step_problems(missing, unindexed)
    notes += _incomplete(by_step, workers.expected, set(workers.attempts), ended)
    # Each worker of a run that has not ended may be in its first step, or have died in it.
    uncommitted = 0 if ended else workers.expected
    if not keys and len(events) > uncommitted:
        problems.append(Problem(INDEX_FOLDER, "there are event files, but no index files"))
    elif ended and not keys and not missing.gaps:
        problems.append(Problem(INDEX_FOLDER, "the run has ended, and no step of it was saved"))
    return Verification(
        path=storage.location,
        ended=ended,
        index_files=len(keys),
        event_files=len(events),
        records=counts["records"],
        checksummed=counts["checksummed"],
        bytes=counts["bytes"],
        problems=tuple(problems),
        notes=tuple(notes),
        attempts=attempts.all(),
    )


def _collections(storage: Storage) -> tuple[list[Problem], Workers]:
    """The problems of the collections files, and the workers that they name."""
    keys = [key for key in storage.list(COLLECTIONS_FOLDER) if collections_worker(key)]
    if not keys:
        open_run(storage)  # its error explains why
        raise MissingCollectionFiles(f"There is no run at {storage.location}")
    problems: list[Problem] = []
    counts: Counter[int] = Counter()
    newest: AttemptId | None = None
    attempts = {worker: 0 for key in keys if (worker := collections_worker(key))}
    worked: dict[str, Worked] = {}
    for key in keys:
        try:
            content = parse_collections(storage.read(key), file=key)
            meta = content.get("_meta", {})
            newest = newest or AttemptId.named_in(meta)
            counts[int(meta.get("num_workers") or 1)] += 1
            worker = collections_worker(key) or ""
            attempts[worker] = whole_number(meta.get("training_run")) or 0
            worked[worker] = Worked(AttemptId.named_in(meta), ClosingNote.named_in(meta))
        except SMDebugError as error:
            problems.append(Problem(key, _without(key, error)))
    if len(counts) > 1:
        numbers = " and ".join(map(str, sorted(counts)))
        text = f"the collections files disagree on the number of workers: {numbers}"
        problems.append(Problem(COLLECTIONS_FOLDER, text))
    expected = max(counts, default=1)
    if len(attempts) < expected:
        text = f"files of {len(attempts)} workers, but the run has {expected}"
        problems.append(Problem(COLLECTIONS_FOLDER, text))
    return problems, Workers(expected, attempts, newest, worked)


def _notes(storage: Storage) -> list[Problem]:
    """The problems of the files with the origin of the run, its checkpoints, and what people have written."""
    problems = []
    readers: tuple[tuple[str, Callable[[Storage], object]], ...] = (
        (ORIGIN, read_origin),
        (ANNOTATIONS, read_annotations),
        (CHECKPOINTS, read_checkpoints),
        (LOGGED_CATALOGS, read_catalogs),
    )
    for key, read in readers:
        try:
            read(storage)
        except DamagedFile as damaged:
            problems.append(Problem(key, damaged.problem))
    return problems


def _index_file(storage: Storage, key: str, quick: bool) -> _Seen:
    named = step_file(key)
    if named is None:
        return _Seen(problems=(Problem(key, "not the name of an index file"),))
    try:
        index = parse_index(storage.read(key), file=key)
    except SMDebugError as error:
        return _Seen(problems=(Problem(key, _without(key, error), step=named.step),))
    problems = list(_misplaced(key, named, index))
    file = index.meta.event_file_name
    if index.names and file is None:
        problems.append(Problem(key, "it names no event file", step=named.step))
    if not index.names or file is None:
        return _Seen(problems=tuple(problems), extras=index.meta.extras)
    check = _sizes_fit if quick else _records_fit
    try:
        problems += check(storage, file, index, named.step)
    except ObjectMissing:
        text = f"it points to {file}, which is missing"
        problems.append(Problem(key, text, step=named.step))
    except SMDebugError as error:
        problems.append(Problem(file, _without(file, error), step=named.step))
    return _Seen(
        event_file=file,
        records=len(index.names),
        checksummed=sum(crc is not None for crc in index.crcs or ()),
        bytes=sum(index.lengths),
        problems=tuple(problems),
        extras=index.meta.extras,
    )


def _misplaced(key: str, named: StepFile, index: IndexFile) -> Iterator[Problem]:
    if key != index_key(named.step, named.worker) and key.endswith(".json"):
        text = f"it belongs at {index_key(named.step, named.worker)}"
        yield Problem(key, text, step=named.step, harmless=True)
    file = index.meta.event_file_name
    if file is not None and (pointed := step_file(file)) is not None and pointed != named:
        text = f"it points to {file}, which belongs to step {pointed.step} of {pointed.worker}"
        yield Problem(key, text, step=named.step)
    lengths = dict(zip(index.names, index.lengths, strict=True))
    for record in index.shape_records:
        if prod(record.shape) > lengths.get(record.name, prod(record.shape)):
            text = f"its shape {record.shape} does not fit into its record"
            yield Problem(key, text, record.name, named.step)


def _sizes_fit(storage: Storage, file: str, index: IndexFile, step: int) -> Iterator[Problem]:
    size = storage.size(file)
    for name, start, length in zip(index.names, index.starts, index.lengths, strict=True):
        if start + length > size:
            text = f"its record ends at byte {start + length}, the file at byte {size}"
            yield Problem(file, text, name, step)


def _records_fit(storage: Storage, file: str, index: IndexFile, step: int) -> Iterator[Problem]:
    data = storage.view(file)
    crcs = index.crcs or (None,) * len(index.names)
    indexed = set()
    for name, start, length, crc in zip(index.names, index.starts, index.lengths, crcs, strict=True):
        indexed.add((start, start + length))
        if start + length > len(data):
            text = f"its record ends at byte {start + length}, the file at byte {len(data)}"
            yield Problem(file, text, name, step)
            continue
        try:
            event = read_record(data[start : start + length], file=file, name=name, step=step, crc32c=crc)
        except DamagedFile as damaged:
            yield Problem(file, damaged.problem, name, step)
            continue
        if event.step != step:
            yield Problem(file, f"its record is of step {event.step}", name, step)
    try:
        spans = [(a - _FRAME_START, b + _FRAME_END) for a, b in record_spans(data, file=file)]
    except DamagedFile as damaged:
        yield Problem(file, damaged.problem, step=step)
        return
    loose = sum(span not in indexed for span in spans)
    if loose:
        yield Problem(file, f"{loose} records without an index entry", step=step, harmless=True)


def _incomplete(
    by_step: dict[int, set[str]], expected: int, workers: set[str], ended: bool
) -> Iterator[Problem]:
    short = {step: seen for step, seen in sorted(by_step.items()) if len(seen) < expected}
    for step, seen in islice(short.items(), 50):
        missing = ", ".join(sorted(workers - seen)[:8]) or f"{expected - len(seen)} of them"
        end = "" if ended else ", so far"
        yield Problem(INDEX_FOLDER, f"step {step} lacks workers{end}: {missing}", step=step, harmless=True)
    if len(short) > 50:
        text = f"{len(short) - 50} more steps lack workers"
        yield Problem(INDEX_FOLDER, text, harmless=True)


def _in_turn(
    storage: Storage, keys: Iterable[str], check: Callable[[str], _Seen]
) -> Iterator[tuple[str, _Seen]]:
    """Check each key, in order; as many at a time as the storage supports."""
    if storage.concurrency <= 1:
        for key in keys:
            yield key, check(key)
        return
    remaining = iter(keys)
    with ThreadPoolExecutor(storage.concurrency, "smdebug-verify") as readers:
        while chunk := list(islice(remaining, _AT_A_TIME)):
            yield from zip(chunk, readers.map(check, chunk), strict=True)


def _without(key: str, error: SMDebugError) -> str:
    """The text of the error, without the file's name in front."""
    text = str(error)
    for start in (f"{key} is damaged: ", f"{key} is ", f"{key}: "):
        text = text.removeprefix(start)
    return text
