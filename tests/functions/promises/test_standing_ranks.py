"""The file of a rank that makes no progress starts the evaluation that names it: no step is to come."""

from __future__ import annotations

import json

import pytest

from functions.decisions.messages import FileKind, arrival_of
from smdebug.files.notes.stalls import STANDS, WENT_ON, Stall, stall_key
from tests.functions.saver import HEALTHY, Saver
from tests.functions.small_world import SmallWorld

LOADS = ("torch.utils.data.dataloader:_get_data:1", "__main__:train:7")
REDUCES = ("torch.distributed.distributed_c10d:all_reduce:3", "__main__:train:9")


@pytest.fixture
def small():
    small = SmallWorld()
    rules = [{"name": "ranks", "rule": "MissingRank"}]
    content = {"version": 1, "default_rules": False, "rules": rules}
    small.place().write("rules.json", json.dumps(content).encode())
    saver = Saver(small.place(), replicas=2).begin()
    saver.save(0, HEALTHY)
    small.settle()
    return small


def says(small, worker, stack, state=STANDS):
    stall = Stall(worker, state, 5, "data", 61.0, 61.0, 60.0, processor=0.0, stack=stack)
    small.place().write(stall_key(worker), stall.encode())
    small.settle()


def found(small):
    details = small.details("Rule Evaluation Condition Met")
    return [detail["evidence"]["worst"][0]["worker"] for detail in details]


def test_the_rank_is_named_when_the_second_file_has_arrived(small):
    says(small, "worker_0", REDUCES)
    assert found(small) == []
    says(small, "worker_1", LOADS)
    assert found(small) == ["worker_1"]
    says(small, "worker_0", REDUCES)
    assert found(small) == ["worker_1"]


def test_a_pause_that_is_over_is_no_finding(small):
    says(small, "worker_0", REDUCES, WENT_ON)
    says(small, "worker_1", LOADS, WENT_ON)
    assert found(small) == []


def test_a_killed_rank_is_named_once_the_run_is_silent(small):
    Saver(small.place(), "worker_1", replicas=2).begin()
    failed = {"closed": True, "last_step": 0, "steps_written": 1, "failed_at": small.clock.now()}
    Saver(small.place(), replicas=2).begin(**failed)
    small.settle()
    assert found(small) == []
    small.pass_time(2000)
    assert found(small) == ["worker_1"]
    (detail,) = small.details("Rule Evaluation Condition Met")
    assert detail["evidence"]["worst"][0]["title"] == "Rank worker_1 was killed"


def test_such_a_file_is_known_by_its_key():
    arrival = arrival_of("bucket", f"runs/a/{stall_key('worker_1')}")
    assert (arrival.run, arrival.kind) == ("bucket/runs/a", FileKind.STALL)
    assert arrival_of("bucket", "runs/a/stalls/b/worker_1.stall.json") is None
