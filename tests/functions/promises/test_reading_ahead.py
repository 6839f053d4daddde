"""A backlog is read beside the evaluation, with the same requests and the same results."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from functions.evaluation import rule_bench
from smdebug.exceptions import StorageUnavailable
from smdebug.files.names import index_key
from tests.functions.deployed_settings import settings
from tests.functions.promises.runs import RUN, cursor, found_steps, report_every_step
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld

STEPS = 80


class OverTheNetwork:
    """A storage that serves several requests at once."""

    concurrency = 32

    def __init__(self, storage: Any, before: Any = lambda key: None):
        self._storage = storage
        self._before = before
        self.location = storage.location
        self.read_keys: list[str] = []

    def read(self, key: str, *span: Any) -> bytes:
        self.read_keys.append(key)
        self._before(key)
        return bytes(self._storage.read(key, *span))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


def with_backlog(steps: int = STEPS, workers: int = 1, rule: str = "ExplodingTensor") -> SmallWorld:
    """Return a stack whose run has saved these steps; none is evaluated."""
    small = SmallWorld(settings(default_rules=(rule,)))
    if rule == "ExplodingTensor":
        report_every_step(small)
    savers = [Saver(small.place(), f"worker_{n}", num_workers=workers) for n in range(workers)]
    for saver in savers:
        saver.begin()
    for step in range(steps):
        for saver in savers:
            saver.save(step, FAILING if step % 10 == 3 else HEALTHY)
    small.deliver()
    return small


def over_network(small: SmallWorld, before: Any = lambda key: None) -> OverTheNetwork:
    storage = OverTheNetwork(small.place(), before)
    small.world = replace(small.world, open_run=lambda run: storage)
    return storage


def files_of(storage: OverTheNetwork) -> Counter[str]:
    return Counter(key for key in storage.read_keys if key.startswith(("events/", "index/")))


@pytest.mark.parametrize("workers", [1, 3, 70])
def test_each_file_of_a_backlog_is_read_once_and_the_results_are_the_same(workers):
    steps = STEPS if workers < 10 else 5
    one_by_one, beside = with_backlog(steps, workers), with_backlog(steps, workers)
    storage = over_network(beside)
    one_by_one.settle()
    beside.settle()
    assert set(files_of(storage).values()) == {1}
    assert len(files_of(storage)) == 2 * workers * steps
    assert cursor(beside) == steps - 1
    assert found_steps(beside) == found_steps(one_by_one) == list(range(3, steps, 10))
    assert beside.details("Rule Evaluation Condition Met") == one_by_one.details(
        "Rule Evaluation Condition Met"
    )
    written = [small.index.steps(RUN, 0) for small in (one_by_one, beside)]
    assert written[0] == written[1]
    assert all(step.layout for step in written[1])


def test_the_index_files_of_a_step_are_read_at_the_same_time():
    together = threading.Barrier(8)

    def before(key: str) -> None:
        if key.startswith("index/"):
            together.wait(timeout=20)  # raises if the others do not come

    small = with_backlog(steps=1, workers=8)
    over_network(small, before)
    small.settle()
    assert cursor(small) == 0


def test_later_steps_are_read_while_a_step_is_evaluated(monkeypatch):
    later = threading.Event()
    ask = rule_bench.ask

    def ask_when_later_is_read(rule: Any, step: int, *arguments: Any, **options: Any) -> Any:
        if step == 1:
            assert later.wait(timeout=20)
        return ask(rule, step, *arguments, **options)

    def before(key: str) -> None:
        if key.startswith(f"events/{5:012}/"):
            later.set()

    small = with_backlog()
    storage = over_network(small, before)
    monkeypatch.setattr(rule_bench, "ask", ask_when_later_is_read)
    small.settle()
    assert later.is_set(), storage.read_keys[:20]
    assert cursor(small) == STEPS - 1


def test_a_single_step_is_read_as_ever():
    readers: set[threading.Thread] = set()
    small = with_backlog(steps=1)
    storage = over_network(small, lambda key: readers.add(threading.current_thread()))
    small.settle()
    Saver(small.place()).save(1, FAILING)
    small.settle()
    assert readers == {threading.current_thread()}
    assert [key.partition("/")[0] for key in storage.read_keys[-2:]] == ["index", "events"]


def test_rules_that_read_no_value_have_no_event_file_read():
    small = with_backlog(rule="LossNotDecreasing")
    storage = over_network(small)
    small.settle()
    assert cursor(small) == STEPS - 1
    assert not [key for key in files_of(storage) if key.startswith("events/")]


def test_a_damaged_file_is_a_problem_of_its_own_step_alone():
    small = with_backlog(steps=12)
    small.place().write(index_key(9, "worker_0"), b"{")
    small.place().delete(index_key(6, "worker_0"))
    small.bucket.notifications.clear()
    over_network(small)
    small.settle()
    details = [event["Detail"] for event in small.events if "cannot be read as saved" in event["Detail"]]
    of_6, of_9 = ([text for text in details if f"Step {step} cannot" in text] for step in (6, 9))
    assert of_6
    assert not any("JSON" in text for text in of_6)
    assert of_9
    assert all("JSON" in text for text in of_9)
    assert cursor(small) == 11


def test_a_file_that_cannot_be_read_ahead_for_a_moment_is_read_when_it_is_due():
    failed: list[str] = []

    def before(key: str) -> None:
        if "000000000007" in key and threading.current_thread() is not threading.main_thread() and not failed:
            failed.append(key)
            raise StorageUnavailable(key, "try again")

    small = with_backlog()
    over_network(small, before)
    small.settle()
    assert failed
    assert cursor(small) == STEPS - 1
    assert found_steps(small) == list(range(3, STEPS, 10))


def test_a_summary_that_cannot_be_written_leaves_the_steps_to_the_next_evaluation(monkeypatch):
    small = with_backlog()
    over_network(small)
    describe = small.index.describe_step

    def fails_once(run: str, step: Any, **summary: Any) -> None:
        if step.step == 20:
            monkeypatch.setattr(small.index, "describe_step", describe)
            raise StorageUnavailable("the table", "try again")
        describe(run, step, **summary)

    monkeypatch.setattr(small.index, "describe_step", fails_once)
    with pytest.raises(StorageUnavailable):
        small.settle()
    assert cursor(small) == -1
    small.pass_time(400)
    assert cursor(small) == STEPS - 1
    assert all(step.layout for step in small.index.steps(RUN, 0))
