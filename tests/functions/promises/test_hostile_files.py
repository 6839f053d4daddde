"""Malformed files: a problem of their run at most, and never of another run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smdebug.files.names import END_MARKER, collections_key, event_key, index_key
from tests.functions.saver import FAILING, Saver
from tests.functions.small_world import SmallWorld

WORKER = "worker_0"
COLLECTIONS, INDEX = collections_key(WORKER), index_key(1, WORKER)
HUGE = "9" * 5000  # more digits than Python reads, in place of the word
ENTRY = ({"tensorname": "gradient/a", "start_idx": 0, "length": 50},)
DEEP = "[" * 100_000 + "]" * 100_000


def collections(*, collection: dict[str, Any] | None = None, **meta: Any) -> str:
    named = {"num_workers": 1, "run_id": "run-1", "training_run": 0, **meta}
    found = {} if collection is None else {"x": {"name": "x", **collection}}
    return json.dumps({"collections": found, "_meta": named})


def rules(*entries: Any) -> str:
    return json.dumps({"version": 1, "rules": entries})


def index(payload: Any = ENTRY, **meta: Any) -> str:
    named = {"mode": "TRAIN", "mode_step": 1, "event_file_name": event_key(1, WORKER)}
    named |= {"run_id": "run-1", "training_run": 0, "previous_step": 0}
    return json.dumps({"meta": named | meta, "tensor_payload": payload, "shape_payload": []})


CONTENTS = {
    COLLECTIONS: [
        DEEP,
        "null",
        "\x00",
        '{"collections": {}, "_meta": {"num_workers": HUGE}}',
        '{"collections": {}, "_meta": {"num_workers": NaN}}',
        *(collections(num_workers=number) for number in (True, -3, 1.0, 10**9, "1")),
        *(collections(training_run=number) for number in (True, -1, 9998, 10**30)),
        *(collections(closed=True, last_step=step) for step in (-1, 10**11, 10**30, True)),
        collections(training_run=1, resumed_at=-5),
        collections(replicas={"chief": "x" * 2000, "workers": 10**30}),
        collections(collection={"include_regex": ["(a+)+$", "("]}),
        collections(collection={"tensor_names": ["x" * 1_000_000]}),
        collections(collection={"reduction_config": {"reductions": "nonsense"}}),
        collections(collection={"save_config": {"TRAIN": {"save_interval": -(10**20)}}}),
        json.dumps({"collections": {"\ud800": {"name": "\ud800"}}, "_meta": {"num_workers": 1}}),
    ],
    "rules.json": [
        DEEP,
        "null",
        "\x00",
        '{"version": HUGE, "rules": []}',
        '{"version": 1, "rules": [{"name": "x", "rule": "ExplodingTensor", "start_step": NaN}]}',
        *(
            rules({"name": "x", "rule": "ExplodingTensor", "start_step": step})
            for step in (-5, True, 10**300, "1")
        ),
        *(
            rules({"name": name, "rule": "ExplodingTensor"})
            for name in ("", "x" * 1_000_000, "\ud800", "a\x00/../x")
        ),
        *(
            rules({"name": "x", "rule": "StalledTrainingRule", "parameters": {"threshold": text}})
            for text in ("NaN", "1e400", "-5", "y" * 100_000)
        ),
        rules(*({"name": f"x{n}", "rule": "ExplodingTensor"} for n in range(20_000))),
    ],
    INDEX: [
        DEEP,
        "null",
        "\x00",
        '{"meta": {"mode": "TRAIN", "mode_step": HUGE}}',
        *(index(previous_step=step) for step in (True, -7, 1, 10**11, 10**300)),
        *(index(saved_at=moment) for moment in (float("nan"), float("inf"), 10**300, "x")),
        index(training_run=10**30),
        index(resumed_at=-1),
        index(run_id="x" * 1_000_000),
        index(mode="X" * 100_000),
        index(mode_step=True),
        index(mode_step=10**30),
        index(event_file_name="../../other/secret"),
        index([{"tensorname": "x" * 1_000_000, "start_idx": 0, "length": 10**18}]),
        index([{"tensorname": "gradient/a", "start_idx": -1, "length": True}]),
        index([{"tensorname": "gradient/\ud800", "start_idx": 0, "length": 5}]),
    ],
}


@pytest.mark.parametrize(
    ("key", "number"),
    [(key, n) for key, contents in CONTENTS.items() for n in range(len(contents))],
)
def test_a_hostile_file_is_a_problem_of_its_run_alone(key, number):
    small = SmallWorld()
    hostile, other = (Saver(small.place(name)).begin() for name in ("hostile", "other"))
    for worker in (hostile, other):
        worker.save(0)
    small.settle()
    content = CONTENTS[key][number].replace("HUGE", HUGE)
    small.place("hostile").write(key, content.encode())
    small.place("hostile").write(event_key(1, WORKER), b"x" * 100)
    other.save(1, FAILING)
    small.settle()
    hostile.save(2)
    other.save(2)
    small.place("hostile").write(END_MARKER, b"")
    other.end()
    small.settle()
    small.pass_time(8000)
    small.sweep()
    runs = [small.index.run(f"runs/{name}") for name in ("hostile", "other")]
    assert [run.state.value for run in runs] == ["Finished", "Finished"]
    assert (runs[1].verdict, runs[1].trouble) == ("IssuesFound", "")
