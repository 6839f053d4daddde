"""Steps of many workers are read by functions beside the one that evaluates, with the same results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from functions.evaluation.reading_shards import REST, ShardReader, read_shard
from smdebug.files.names import index_key
from tests.functions.promises.runs import RUN, cursor, found_steps
from tests.functions.promises.test_reading_ahead import files_of, over_network, with_backlog
from tests.functions.small_world import SmallWorld

WORKERS, STEPS = 20, 5


class Readers:
    """Functions that read shards of a small stack; `spoil` may take the place of an answer."""

    def __init__(self, small: SmallWorld, at_once: int = 3, spoil: Callable[[int, Any], Any] | None = None):
        self.at_once = at_once
        self.requests: list[Mapping[str, Any]] = []
        self._small = small
        self._spoil = spoil or (lambda number, answer: answer)

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        answers = []
        for request in requests:
            self.requests.append(request)
            answer = read_shard(lambda run: self._small.place(), json.loads(json.dumps(request)))
            answers.append(self._spoil(len(self.requests), json.loads(json.dumps(answer))))
        return answers


def with_readers(small: SmallWorld, readers: Readers, fewest: int = 10) -> Any:
    """Let the readers read for the stack; return the storage that the evaluation itself reads from."""
    storage = over_network(small)
    settings = replace(small.world.settings, fewest_in_shards=fewest, files_a_shard=4)
    small.world = replace(small.world, readers=readers, settings=settings)
    return storage


def results(small: SmallWorld) -> Any:
    small.settle()
    assert cursor(small) == STEPS - 1
    assert small.statuses()
    found = small.details("Rule Evaluation Condition Met")
    return found_steps(small), found, small.index.steps(RUN, 0), small.statuses()


@pytest.fixture(scope="module")
def alone() -> Any:
    return results(with_backlog(STEPS, WORKERS))


def test_the_functions_read_every_file_of_the_steps_and_nothing_changes(alone):
    small = with_backlog(STEPS, WORKERS)
    readers = Readers(small)
    storage = with_readers(small, readers)
    assert results(small) == alone
    # The first value of a step that was not read ahead: only the second worker's shows that all are read.
    first = [f"events/{step:012}/{step:012}_worker_0.tfevents" for step in (0, 1)]
    assert sorted(files_of(storage)) == first
    asked = [key for request in readers.requests for key, _ in request["files"]]
    assert len(asked) == len(set(asked)) == 2 * WORKERS * STEPS - len(first)
    assert len(readers.requests) == 2 * 3 * STEPS


@pytest.mark.parametrize(
    "spoil",
    [
        lambda number, answer: None if number % 3 == 0 else answer,
        lambda number, answer: None,
        lambda number, answer: {"errorMessage": "Task timed out"},
        lambda number, answer: {**answer, "version": 2},
        lambda number, answer: {**answer, "content": answer["content"][:40]} if number % 3 == 0 else answer,
    ],
    ids=["one of three throttled", "all throttled", "timed out", "another version", "cut off"],
)
def test_a_shard_that_fails_is_read_by_the_evaluation_itself(alone, spoil):
    small = with_backlog(STEPS, WORKERS)
    readers = Readers(small, spoil=spoil)
    storage = with_readers(small, readers)
    assert results(small) == alone
    assert readers.requests
    assert set(files_of(storage).values()) == {1}


def test_functions_of_which_most_fail_are_left_alone_for_a_minute():
    small = with_backlog(STEPS, WORKERS)
    works = False
    readers = Readers(small, spoil=lambda number, answer: answer if works else None)
    with_readers(small, readers)
    read = ShardReader(small.world, RUN)
    files = [(index_key(0, f"worker_{n}"), 0) for n in range(WORKERS)]
    assert read(files) == {}
    assert len(readers.requests) == 3
    works = True
    assert read(files) == {}
    assert len(readers.requests) == 3
    small.clock.time += REST
    assert len(read(files)) == WORKERS


def test_a_run_of_few_workers_is_read_by_the_evaluation_alone():
    small = with_backlog(STEPS, WORKERS)
    readers = Readers(small)
    storage = with_readers(small, readers, fewest=WORKERS + 1)
    results(small)
    assert readers.requests == []
    assert len(files_of(storage)) == 2 * WORKERS * STEPS


def test_a_damaged_file_that_a_function_has_read_is_a_problem_of_its_own_step_alone():
    small = with_backlog(STEPS, WORKERS)
    small.place().write(index_key(3, "worker_7"), b"{")
    small.place().delete(index_key(2, "worker_5"))
    small.bucket.notifications.clear()
    with_readers(small, Readers(small))
    small.settle()
    details = [event["Detail"] for event in small.events if "cannot be read as saved" in event["Detail"]]
    assert any("Step 3 cannot" in text and "worker_7" in text and "JSON" in text for text in details)
    assert any("Step 2 cannot" in text and "worker_5" in text for text in details)
    assert cursor(small) == STEPS - 1
