"""Reading a message from S3: the run, and which of its files has arrived.

S3 sends two forms, its own notifications, whose keys are encoded, and events of EventBridge. The run is
the part of the key before the folders of a run's own files. It may lie below
a folder called `events`. Which places may be runs is decided elsewhere (`functions.decisions.tenants`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import LAST_STEP, STEPS_PER_INDEX_FOLDER, worker_in

_SAGEMAKER_FOLDER = "debug-output"


class FileKind(Enum):
    """The kinds of files of a run."""

    EVENT = "event"
    INDEX = "index"
    COLLECTIONS = "collections"
    RULES = "rules"
    END = "end"
    STALL = "stall"
    """Where a rank stands that makes no progress."""


class Arrival(NamedTuple):
    """A file of a run that has arrived."""

    run: str
    kind: FileKind
    key: str
    step: int = -1
    worker: str = ""
    uploaded: float = 0.0
    sequencer: str = ""


class JobEnded(NamedTuple):
    """A SageMaker training job that will write no more."""

    job: str
    status: str


class Reminder(NamedTuple):
    """A message from ourselves: check that everything was done for the run, or finish it."""

    run: str
    finish: bool = False
    at_once: bool = False  # there is news: a check that is due later is too late


class Continuation(NamedTuple):
    """A message from an execution of the workflow that had no time left: continue with this group."""

    run: str
    group: str | None  # None: finish the run


class NotUnderstood(SMDebugValueError):
    """The message is not of a form that S3 or SageMaker sends: it becomes a dead letter."""


def arrivals_in(body: str) -> list[Arrival | JobEnded | Reminder | Continuation]:
    """Return the files, ended jobs and own messages that a message reports; empty for any other."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(f"The message is not JSON ({error}): {body[:200]!r}") from error
    if not isinstance(payload, dict):
        raise NotUnderstood(f"The message is not a JSON object: {body[:200]!r}")
    if payload.get("Event") == "s3:TestEvent":
        return []
    try:
        if "Records" in payload:
            return [arrival for record in payload["Records"] for arrival in _of_record(record)]
        if payload.get("source") == "aws.s3":
            return list(_of_event(payload))
        if payload.get("source") == "aws.sagemaker":
            return _of_job(payload["detail"])
        if "continue" in payload:
            group = payload.get("group")
            return [Continuation(_text(payload["continue"]), group and _text(group))]
        if "check" in payload or "finish" in payload:
            finish = "finish" in payload
            run = _text(payload["finish" if finish else "check"])
            return [Reminder(run, finish, payload.get("at_once") is True)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotUnderstood(
            f"The message looks like S3's but is malformed: {error!r} in {body[:200]!r}"
        ) from error
    raise NotUnderstood(f"The message is neither from S3 nor from SageMaker: {body[:200]!r}")


def arrival_of(bucket: str, key: str, *, uploaded: float = 0.0, sequencer: str = "") -> Arrival | None:
    """Return the file of a run at that key, or None if it is not one."""
    for pattern, kind in _KEYS:
        match = pattern.fullmatch(key)
        if match is None:
            continue
        prefix, step, worker = match["prefix"], -1, ""
        if prefix is not None and not _is_plain(prefix):
            return None
        if kind in (FileKind.EVENT, FileKind.INDEX):
            step, worker = int(match["step"]), worker_in(match["worker"])
            folder = step if kind is FileKind.EVENT else step // STEPS_PER_INDEX_FOLDER
            if step > LAST_STEP or int(match["folder"]) != folder:
                return None
        elif kind is FileKind.COLLECTIONS:
            worker = worker_in(match["worker"])
        run = bucket if prefix is None else f"{bucket}/{prefix}"
        return Arrival(run, kind, key, step, worker, uploaded, sequencer)
    return None


def by_run(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    """Group the arrivals by run."""
    runs: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        runs.setdefault(arrival.run, []).append(arrival)
    return runs


def job_of(run: str) -> str | None:
    """Return the SageMaker training job of the run, whose path is `…/<job>/debug-output`."""
    parts = run.split("/")
    return parts[-2] if len(parts) > 2 and parts[-1] == _SAGEMAKER_FOLDER else None


def bucket_and_prefix(run: str) -> tuple[str, str]:
    """Return the bucket of a run and the prefix of its keys."""
    bucket, slash, prefix = run.partition("/")
    return bucket, f"{prefix}/" if slash else ""


_PREFIX = r"(?:(?P<prefix>.*)/)?"
_KEYS = tuple(
    (re.compile(_PREFIX + pattern, re.DOTALL), kind)
    for pattern, kind in (
        (r"index/(?P<folder>[0-9]{9})/(?P<step>[0-9]{12})_(?P<worker>[^/]+)\.json", FileKind.INDEX),
        (
            r"events/(?P<folder>[0-9]{12})/(?P<step>[0-9]{12})_(?P<worker>[^/]+)\.tfevents",
            FileKind.EVENT,
        ),
        (r"collections/[0-9]{9}/(?P<worker>[^/]+)_collections\.json", FileKind.COLLECTIONS),
        (r"rules\.json", FileKind.RULES),
        (r"training_job_end\.ts", FileKind.END),
        (r"stalls/[^/]+\.stall\.json", FileKind.STALL),
    )
)
_NO_FOLDERS = frozenset({"", ".", ".."})


def _is_plain(prefix: str) -> bool:
    """Whether this can be the location of a run: no empty or dotted folders, no control characters."""
    return _NO_FOLDERS.isdisjoint(prefix.split("/")) and prefix.isprintable()


def _of_record(record: Mapping[str, Any]) -> Iterator[Arrival]:
    if not record["eventName"].startswith("ObjectCreated:"):
        return
    object_event = record["s3"]
    arrival = arrival_of(
        _bucket(object_event["bucket"]["name"]),
        unquote_plus(_text(object_event["object"]["key"]), errors="strict"),
        uploaded=_seconds(record.get("eventTime")),
        sequencer=str(object_event["object"].get("sequencer", "")),
    )
    if arrival is not None:
        yield arrival


def _of_event(event: Mapping[str, Any]) -> Iterator[Arrival]:
    if event.get("detail-type") != "Object Created":
        return
    detail = event["detail"]
    arrival = arrival_of(
        _bucket(detail["bucket"]["name"]),
        _text(detail["object"]["key"]),
        uploaded=_seconds(event.get("time")),
        sequencer=str(detail["object"].get("sequencer", "")),
    )
    if arrival is not None:
        yield arrival


def _of_job(detail: Mapping[str, Any]) -> list[Arrival | JobEnded | Reminder | Continuation]:
    job, status = _text(detail["TrainingJobName"]), _text(detail["TrainingJobStatus"])
    return [JobEnded(job, status)] if status in ("Completed", "Failed", "Stopped") else []


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    return value


def _bucket(name: Any) -> str:
    """Return the bucket's name; a missing one, or one with a slash, would name a different run."""
    if not _text(name) or "/" in name:
        raise ValueError(f"{name!r:.80} is not a bucket")
    return str(name)


def _seconds(time: Any) -> float:
    """Return a time from S3 in seconds, or 0 without one; it only serves to measure delays."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError):
        return 0.0


# Which of two versions of a file is the newer


def is_older(sequencer: str, known: str) -> bool:
    """Whether this version is older than the known one; False if either has no sequencer."""
    return bool(known and sequencer) and comparable(sequencer) < comparable(known)


def comparable(sequencer: str) -> str:
    """Return a sequencer of S3, a hexadecimal number, padded so that it compares from the left."""
    return sequencer.ljust(64, "0")


def version_of_listing(known: str) -> str:
    """Return a synthetic version for listed files: newer than `known`, older than any later notification."""
    return comparable(known) + "1"
