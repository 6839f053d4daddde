"""The targets: each reads bytes, or refuses them with its own errors, and gives the same result twice."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from functions.decisions.messages import Arrival, NotUnderstood, arrivals_in, by_run
from smdebug.exceptions import DamagedFile, IndexReaderException, RulesFileError
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.collections_file import encode_collections, parse_collections
from smdebug.files.event_parsing import Event
from smdebug.files.event_reading import (
    decode_event,
    iterate_records,
    read_record,
    read_value,
    record_spans,
)
from smdebug.files.framing import frame
from smdebug.files.index import parse_index
from smdebug.service.rules_file import in_our_form, parse_rules, read_rules

GOLDEN = Path(__file__).parents[1] / "golden"
CORPUS = Path(__file__).parent / "corpus"
NAME = "gradient/dense"


class Target(NamedTuple):
    """A target: a function that reads bytes."""

    name: str
    read: Callable[[bytes], object]
    refuses_with: tuple[type[Exception], ...]
    seeds: Callable[[], Iterator[bytes]]
    is_text: bool = True

    def takes(self, data: bytes) -> bool:
        """Return whether the input is read or refused with the right error; raise any other error."""
        try:
            self.read(data)
        except self.refuses_with:
            return False
        return True

    @property
    def kept(self) -> list[bytes]:
        """Inputs that were worth keeping, one in each line of its file."""
        file = CORPUS / f"{self.name}.txt"
        if not file.exists():
            return []
        return [base64.b64decode(line) for line in file.read_text(encoding="ascii").split()]

    def keep(self, inputs: set[bytes]) -> None:
        CORPUS.mkdir(exist_ok=True)
        lines = (base64.b64encode(data).decode() for data in sorted(inputs, key=lambda o: (len(o), o)))
        (CORPUS / f"{self.name}.txt").write_text("".join(f"{line}\n" for line in lines))


def same(value: Any, other: Any) -> bool:
    value, other = np.asarray(value), np.asarray(other)
    if (value.dtype, value.shape) != (other.dtype, other.shape):
        return False
    if value.dtype == object:  # texts that end in NUL
        return bool(value.tolist() == other.tolist())
    return value.tobytes() == other.tobytes()


def read_events(data: bytes) -> None:
    """A file of records."""
    spans = list(record_spans(data, file="f"))
    events = list(iterate_records(data, file="f"))
    assert len(spans) == len(events)
    unchecked = iterate_records(data, file="f", check="none")
    for (start, stop), event, loose in zip(spans, events, unchecked, strict=True):
        assert same(decode_event(data[start:stop], file="f").value, event.value)
        assert same(loose.value, event.value)
        record = data[start - 12 : stop + 4]
        assert same(read_record(record, file="f", name=event.name).value, event.value)
        fast = read_value(record, file="f", name=event.name, step=event.step)
        assert same(fast, event.value)


def read_message(data: bytes) -> None:
    """The payload of a record, under a length and a checksum that are right."""
    event: Event = decode_event(data, file="f")
    record = frame(data, "tfrecord")
    whole = b"".join(bytes(piece) for piece in record.pieces)
    read = read_record(whole, file="f", name=event.name, crc32c=record.crc32c)
    assert same(read.value, event.value)
    again = read_value(whole, file="f", name=event.name, step=event.step, crc32c=record.crc32c)
    assert same(again, event.value)


def read_index(data: bytes) -> None:
    """An index file, alone and after another."""
    index = parse_index(data, file="f")
    alike = AlikeIndexFiles()
    assert alike.parse(data, file="f") == index
    assert alike.parse(data, file="f") == index
    name = index.meta.event_file_name
    assert name is None or ".." not in name.split("/")


def read_collections(data: bytes) -> None:
    content = parse_collections(data, file="f")
    assert parse_collections(encode_collections(content), file="f") == content


def read_arrivals(data: bytes) -> None:
    """The body of a message in the queue of arrivals."""
    items = arrivals_in(data.decode("utf-8", "replace"))
    arrivals = [arrival for arrival in items if isinstance(arrival, Arrival)]
    assert sum(map(len, by_run(arrivals).values())) == len(arrivals)
    for arrival in arrivals:
        prefix = arrival.run.partition("/")[2]
        assert arrival.key.startswith(f"{prefix}/" if prefix else "")
        assert arrival.step >= -1
        assert math.isfinite(arrival.uploaded)


def read_rules_file(data: bytes) -> None:
    read = read_rules(data, file="rules.json")
    first = None
    try:
        parse_rules(data, file="rules.json")
    except RulesFileError as problem:
        first = str(problem)
    assert first == (str(read.problems[0]) if read.problems else None)
    again = read_rules(json.dumps(in_our_form(read.rules)).encode(), file="rules.json")
    assert not again.problems, again.trouble
    assert again.rules == read.rules


def files(pattern: str) -> Iterator[bytes]:
    for path in sorted(GOLDEN.glob(pattern)):
        data = path.read_bytes()
        if len(data) <= 4096:
            yield data


def _event_files() -> Iterator[bytes]:
    yield from files("damaged/events/*")
    yield from files("runs/*/events/*/*")


def _messages() -> Iterator[bytes]:
    for data in _event_files():
        try:
            yield from (data[start:stop] for start, stop in record_spans(data, file="f"))
        except DamagedFile:
            yield data[12:-4]


def _index_files() -> Iterator[bytes]:
    yield from files("damaged/index/*")
    yield from files("runs/*/index/*/*")


def _collections_files() -> Iterator[bytes]:
    yield from files("damaged/collections/*")
    yield from files("runs/*/collections/*/*")


def _bodies() -> Iterator[bytes]:
    keys = (
        "m/run/events/000000000005/000000000005_worker_0.tfevents",
        "m/run/index/000000000/000000000005_worker_0.json",
        "collections/000000000/worker_0_collections.json",
        "m%2Frun/training_job_end.ts",
        "m/rules.json",
    )
    time = "2026-01-02T03:04:05.678Z"
    for key in keys:
        place = {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "0A1"}}
        record = {"eventName": "ObjectCreated:Put", "eventTime": time, "s3": place}
        event = {"source": "aws.s3", "detail-type": "Object Created", "time": time, "detail": place}
        yield json.dumps({"Records": [record, record]}).encode()
        yield json.dumps(event).encode()
    job = {"TrainingJobName": "j", "TrainingJobStatus": "Completed"}
    for content in (
        {"source": "aws.sagemaker", "detail": job},
        {"Event": "s3:TestEvent"},
        {"check": "b/m", "at_once": True},
        {"finish": "b/m"},
    ):
        yield json.dumps(content).encode()


def _rules_files() -> Iterator[bytes]:
    ours = {
        "name": "exploding",
        "rule": "ExplodingTensor",
        "parameters": {"threshold": "10"},
        "source": "s3://b/rules/mine.py",
        "other_trials": ["s3://b/other"],
        "start_step": 3,
        "end_step": 9,
        "repeat": "every_step",
        "logging_level": "INFO",
        "actions": [{"name": "stoptraining"}, {"name": "email", "parameter": "me@example.org"}],
    }
    yield json.dumps({"version": 1, "rules": [ours, {**ours, "name": "b"}]}).encode()
    yield json.dumps([{"rule": "VanishingGradient"}]).encode()
    sagemaker = {
        "RuleConfigurationName": "a",
        "RuleEvaluatorImage": "image",
        "RuleParameters": {"rule_to_invoke": "LossNotDecreasing", "num_steps": "10"},
    }
    yield json.dumps({"DebugRuleConfigurations": [sagemaker]}).encode()
    tornasole = {"RuleName": "AllZero", "RuntimeParameters": {"threshold": "0.5"}}
    yield json.dumps({"rules_specification": [tornasole]}).encode()


TARGETS = {
    target.name: target
    for target in (
        Target("events", read_events, (DamagedFile,), _event_files, is_text=False),
        Target("message", read_message, (DamagedFile,), _messages, is_text=False),
        Target("index", read_index, (IndexReaderException,), _index_files),
        Target("collections", read_collections, (DamagedFile,), _collections_files),
        Target("arrivals", read_arrivals, (NotUnderstood,), _bodies),
        Target("rules", read_rules_file, (RulesFileError,), _rules_files),
    )
}
