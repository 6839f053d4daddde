"""What reading a run in a bucket costs, counted at the bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3
import numpy as np
import pytest

from smdebug.exceptions import StorageError
from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.rules import RequiredTensors
from smdebug.storage import landing
from smdebug.storage.s3 import S3Storage
from smdebug.trials import S3Trial, Trial, create_trial, no_refresh
from smdebug.trials.stored.event_files import EventFiles
from tests.support.mocked_aws import mocked_aws
from tests.trials.writing import StoppedClock, begin, end, open_trial, write_step


class Bucket:
    """A bucket that counts its requests."""

    def __init__(self, client: Any, name: str):
        self.client = client
        self.name = name
        self.asked: Counter[str] = Counter()
        client.create_bucket(Bucket=name)
        client.meta.events.register("before-call.s3", self._count)

    def _count(self, model: Any, **_: Any) -> None:
        self.asked[model.name] += 1

    def storage(self, prefix: str = "some/run") -> S3Storage:
        return S3Storage(self.name, prefix, self.client)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with mocked_aws():
        yield Bucket(boto3.client("s3"), "trials")


@pytest.fixture
def run(bucket, request) -> S3Storage:
    """Forty steps of five tensors by two workers, going on."""
    storage = begin(bucket.storage(request.node.name.replace("[", "/")), workers=2)
    for step in range(40):
        for worker in (0, 1):
            tensors = {f"w{number}": np.full(8, step + number, np.float32) for number in range(5)}
            write_step(storage, step, tensors, worker=worker)
    bucket.asked.clear()
    return storage


def test_opening_lists_once_and_reads_each_index_file_once(bucket, run):
    trial = open_trial(run)
    assert trial.index.steps(ModeKeys.GLOBAL) == list(range(40))
    assert bucket.asked == {
        "ListObjectsV2": 2,  # collections; index
        "GetObject": 1 + 80,  # one collections file; the index files
        "HeadObject": 1,  # the end marker
    }


def test_opening_lists_as_often_as_the_bucket_has_pages(bucket, run):
    def small_pages(params: Any, **_: Any) -> None:
        params["MaxKeys"] = 30

    build = "before-parameter-build.s3.ListObjectsV2"
    bucket.client.meta.events.register(build, small_pages)
    try:
        trial = open_trial(run)
        assert bucket.asked["ListObjectsV2"] == 1 + 3
        bucket.asked.clear()
        assert trial.steps() == list(range(40))
        assert bucket.asked == {"ListObjectsV2": 1, "HeadObject": 1}
    finally:
        bucket.client.meta.events.unregister(build, small_pages)


def read_all_at(trial: Trial, step: int) -> None:
    """Read every tensor of a step of `run`, and a reduction of each."""
    for number in range(5):
        tensor = trial.tensor(f"w{number}")
        for worker in ("worker_0", "worker_1"):
            assert tensor.value(step, worker=worker).tolist() == [step + number] * 8
            assert tensor.reduction_value(step, "mean", worker=worker) == step + number


def test_all_tensors_of_a_step_cost_one_request_per_worker(bucket, run):
    trial = open_trial(run)
    bucket.asked.clear()
    read_all_at(trial, step=7)
    assert bucket.asked == {"GetObject": 2}


def test_tensors_of_a_step_that_are_read_again_cost_no_request(bucket, run):
    trial = open_trial(run)
    read_all_at(trial, step=7)
    bucket.asked.clear()
    read_all_at(trial, step=7)
    assert bucket.asked == {}


def test_all_tensors_of_a_large_step_cost_two_requests_per_worker(bucket):
    storage = begin(bucket.storage("large"))
    tensors = {f"w{number}": np.full(1 << 17, number, np.float32) for number in range(20)}
    write_step(storage, 0, tensors)
    trial = open_trial(storage)
    bucket.asked.clear()
    for name, value in tensors.items():
        assert np.array_equal(trial.tensor(name).value(0), value)
    assert bucket.asked == {"GetObject": 2}


def test_all_tensors_of_a_step_that_memory_cannot_hold_cost_two_requests_per_worker(bucket, monkeypatch):
    monkeypatch.setattr(landing, "SPOOLED_FROM", 4 << 20)
    storage = begin(bucket.storage("enormous"), workers=2)
    tensors = {f"w{number}": np.full(1 << 17, number, np.float32) for number in range(20)}
    for worker in (0, 1):
        write_step(storage, 0, tensors, worker=worker)
    trial = open_trial(storage)
    trial.event_files = EventFiles(storage, budget=4 << 20, spool_budget=20 << 20)
    bucket.asked.clear()
    for worker in ("worker_0", "worker_1"):
        for name, value in tensors.items():
            assert np.array_equal(trial.tensor(name).value(0, worker=worker), value)
    assert bucket.asked == {"GetObject": 4}


def test_required_tensors_of_one_file_are_fetched_with_one_request(bucket, run):
    trial = open_trial(run)
    required = RequiredTensors(trial)
    required.add("w.", [7, 8], should_match_regex=True)
    bucket.asked.clear()
    with no_refresh(trial):
        required.fetch()
    assert bucket.asked["GetObject"] == 2


def test_all_values_of_a_tensor_cost_one_request_per_step(bucket, run):
    trial = open_trial(run)
    bucket.asked.clear()
    with no_refresh(trial):
        values = trial.tensor("w3").values(worker="worker_1")
    assert [value[0] for value in values.values()] == [step + 3 for step in range(40)]
    assert bucket.asked == {"GetObject": 40}


def test_a_shape_that_the_value_alone_tells_costs_one_request(bucket, run):
    trial = open_trial(run)
    bucket.asked.clear()
    assert trial.tensor("w0").shape(0) == (8,)
    assert bucket.asked == {"GetObject": 1}


def test_news_cost_what_is_new(bucket, run):
    trial = open_trial(run)
    for worker in (0, 1):
        write_step(run, 40, {"w0": 1.0}, worker=worker)
    bucket.asked.clear()
    with no_refresh(trial):
        trial.tensor_names()
    assert not bucket.asked
    trial.refresh_data()
    assert bucket.asked["ListObjectsV2"] == 1 + 1  # the layout is new: collections are read again
    assert bucket.asked["GetObject"] == 2 + 1
    assert trial.last_index_token == f"{trial.path}/{names.index_key(40, 'worker_1')}"


def test_an_ended_run_is_not_asked_again(bucket, run):
    end(run)
    clock = StoppedClock()
    trial = open_trial(run, clock)
    bucket.asked.clear()
    assert trial.steps() == list(range(40))
    assert trial.has_passed_step(41).name == "UNAVAILABLE"
    assert not bucket.asked
    assert clock.time == 0


def test_a_path_on_s3_is_opened_as_an_s3_trial(bucket, run):
    trial = create_trial(f" {run.location}/ ")
    assert isinstance(trial, S3Trial)
    assert trial.path == run.location
    assert trial.name == run.location.rpartition("/")[2]
    assert (trial.bucket_name, trial.prefix_name) == tuple(run.location.removeprefix("s3://").split("/", 1))
    assert trial.steps() == list(range(40))
    same = S3Trial(trial.name, trial.bucket_name, trial.prefix_name, (5, 7), check=True)
    assert same == trial
    assert same.steps() == [5, 6]


def test_a_bucket_that_is_not_there_is_reported_as_missing_at_once(bucket):
    with pytest.raises(StorageError, match="no-such-bucket"):
        create_trial("s3://no-such-bucket/run")
