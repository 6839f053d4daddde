"""A file that cannot be read now is read later; one that is damaged or too large is a problem of the run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from functions.arrivals.closing_notes import record_closing_notes
from functions.arrivals.collections_file import record_collections
from functions.arrivals.rules_file import requested_rules
from functions.decisions.messages import Arrival, FileKind
from functions.ports import too_large
from smdebug.exceptions import StorageUnavailable
from smdebug.files.names import collections_key
from smdebug.service.records import RunRecord
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
ARRIVAL = Arrival(RUN, FileKind.COLLECTIONS, collections_key("worker_0"), worker="worker_0", uploaded=1.0)


class Storage:
    """Objects that answer with an error, or with these bytes."""

    def __init__(self, answer: bytes | Exception):
        self.answer = answer

    def read(self, bucket: str, key: str) -> bytes:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def recorded(answer: bytes | Exception) -> RunRecord:
    world = SmallWorld().world
    record = RunRecord(RUN)
    world.index.begin_run(record)
    return record_collections(replace(world, objects=Storage(answer)), record, ARRIVAL, "attempt-1")


def test_a_storage_that_is_unavailable_for_a_moment_is_asked_again():
    with pytest.raises(StorageUnavailable):
        recorded(StorageUnavailable("s3://runs", "SlowDown"))


def test_a_damaged_file_is_a_trouble_of_the_run():
    assert recorded(b"{").troubles


@pytest.mark.parametrize(
    ("collection", "problem"),
    [
        ({}, "A collection must be a dictionary with a name"),
        ({"name": "x", "reduction_config": {"reductions": "nonsense"}}, "not a reduction"),
        ({"name": "x", "save_config": {"TRAIN": {"save_interval": 0}}}, "save_interval must be"),
    ],
)
def test_a_file_that_no_rule_can_read_is_a_trouble_of_the_run(collection, problem):
    """Each evaluation of the run would fail on it, and be tried again."""
    content = {"collections": {"x": collection}, "_meta": {"num_workers": 1}}
    record = recorded(json.dumps(content).encode())
    assert record.num_workers is None
    assert problem in record.troubles["collections"]
    assert ARRIVAL.key in record.troubles["collections"]


def test_a_file_that_is_too_large_is_a_trouble_of_the_run():
    assert "has 99 bytes" in recorded(too_large("s3://runs/mnist", 99)).troubles["collections"]


@pytest.mark.parametrize(("attempt", "is_noted"), [(0, True), (-1, False), (10**11, False)])
def test_a_closing_note_of_an_attempt_that_cannot_be_is_none(attempt, is_noted):
    meta = {"run_id": "r", "training_run": attempt, "closed": True, "last_step": 7}
    note = json.dumps({"collections": {}, "_meta": meta}).encode()
    world = replace(SmallWorld().world, objects=Storage(note))
    assert record_closing_notes(world, RunRecord(RUN, run_id="r"), [ARRIVAL]) == is_noted
    assert world.index.closing_notes(RUN, attempt) == ({"worker_0": 7} if is_noted else {})


@pytest.mark.parametrize("run_id", ["another", None])
def test_a_closing_note_of_another_training_is_none(run_id):
    meta = {"run_id": run_id, "training_run": 0, "closed": True, "last_step": 7}
    note = json.dumps({"collections": {}, "_meta": meta}).encode()
    world = replace(SmallWorld().world, objects=Storage(note))
    assert not record_closing_notes(world, RunRecord(RUN, run_id="r"), [ARRIVAL])
    assert world.index.closing_notes(RUN, 0) == {}


def test_a_rules_file_that_is_too_large_is_reported():
    world = replace(SmallWorld().world, objects=Storage(too_large("s3://runs/rules.json", 99)))
    rules, problem = requested_rules(world, RUN)
    assert rules is None
    assert "s3://runs/rules.json" in problem
