"""The requests of a view: as many at step 100,000 as at step 10, and never a listing."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.names import INDEX_FOLDER, index_key, step_file
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule
from smdebug.service.records import StepLayout
from smdebug.storage import ByteSpan
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.past.as_of import AsOfTrial
from smdebug.trials.past.history import MemoryHistory, StepSummary
from smdebug.trials.past.index_files import IndexFiles
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import STANDARD_COLLECTIONS
from tests.trials.viewing import FarStorage, collections_of, view_of
from tests.trials.writing import begin, write_step

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
COLLECTIONS = {name: {"include_regex": regexes} for name, regexes in STANDARD_COLLECTIONS.items()}
WORKERS = ("worker_0", "worker_1", "worker_2")
LAST = 200_000


def mode_of(step: int) -> tuple[ModeKeys, int]:
    """Every fifth step evaluates; the others train."""
    return (EVAL, step // 5) if step % 5 == 4 else (TRAIN, step - step // 5)


class EndlessRun(MemoryStorage):
    """A run whose files are written when they are read."""

    def __init__(self) -> None:
        super().__init__()
        begin(self, len(WORKERS), COLLECTIONS)

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        name = step_file(key)
        if name is None:
            return super().read(key, span)
        mode, mode_step = mode_of(name.step)
        made = MemoryStorage()
        write_step(made, name.step, held_at(name.step), worker=name.worker, mode=mode, mode_step=mode_step)
        return made.read(key, span)


def held_at(step: int) -> dict[str, Any]:
    always = {"loss": np.float32(step), "weight/a": np.full(4, step % 10 + 1, np.float32)}
    return always if step % 5 == 4 else always | {"gradient/a": np.ones(3, np.float32)}


class EndlessHistory:
    """A step index with every step up to a distant one, which counts its queries."""

    def __init__(self, layouts: Mapping[str, StepLayout]):
        self._layouts = layouts
        self._digests = {layout.mode: digest for digest, layout in layouts.items()}
        self.questions: list[tuple[Any, ...]] = []
        self.returned = 0

    def _summary(self, step: int) -> StepSummary:
        self.returned += 1
        mode, mode_step = mode_of(step)
        return StepSummary(step, mode, mode_step, WORKERS, self._digests[mode.name])

    def at(self, step: int) -> StepSummary | None:
        self.questions.append(("at", step))
        return self._summary(step) if 0 <= step <= LAST else None

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        self.questions.append(("before", step, mode))
        for earlier in range(min(step - 1, LAST), -1, -1):
            if mode in (None, mode_of(earlier)[0]):
                yield self._summary(earlier)

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return self._summary(4 if mode is EVAL else 0)

    def layouts(self) -> Mapping[str, StepLayout]:
        self.questions.append(("layouts",))
        return self._layouts


@pytest.fixture(scope="module")
def layouts() -> Mapping[str, StepLayout]:
    run = EndlessRun()
    view = view_of(run, MemoryHistory())
    digests = [view.move_to(step, WORKERS).layout for step in range(5)]
    assert len(set(digests)) == 2
    return {digest: view.layout(digest) for digest in digests}


class Runs:
    """A view of the endless run and of another one, and what was asked of both."""

    def __init__(self, layouts: Mapping[str, StepLayout]):
        self.storage, self.other_storage = FarStorage(EndlessRun()), FarStorage(EndlessRun())
        self.history, self.other_history = EndlessHistory(layouts), EndlessHistory(layouts)
        collections = collections_of(EndlessRun())
        self.view, self.other = (
            AsOfTrial(name, storage, history=history, collections=collections, num_workers=len(WORKERS))
            for name, storage, history in (
                ("this", self.storage, self.history),
                ("other", self.other_storage, self.other_history),
            )
        )
        self.rules = [
            made(self.view, self.other)
            for made in (
                lambda view, other: CATALOG["VanishingGradient"].load()(view, threshold=10),
                lambda view, other: CATALOG["ExplodingTensor"].load()(view),
                lambda view, other: CATALOG["SimilarAcrossRuns"].load()(view, other),
                lambda view, other: CATALOG["WeightUpdateRatio"].load()(view),
                lambda view, other: CATALOG["AllZero"].load()(view, tensor_regex=".*"),
                lambda view, other: CATALOG["UnchangedTensor"].load()(view, tensor_regex=".*", num_steps=3),
                lambda view, other: CATALOG["LossNotDecreasing"].load()(view, num_steps=1, mode="TRAIN"),
            )
        ]

    def evaluate(self, step: int, *rules: Rule) -> int:
        """How many of the rules fire."""
        fired = 0
        self.view.move_to(step, WORKERS)
        if not rules:
            self.other.limit_to(step)
        for rule in rules or self.rules:
            try:
                rule.invoke(step)
            except RuleEvaluationConditionMet:
                fired += 1
        return fired

    def costs(self) -> dict[str, Any]:
        costs = {
            "steps read": len({step_file(key).step for key in self.storage.gets()}),
            "gets": len(self.storage.gets()),
            "gets of the other": len(self.other_storage.gets()),
            "questions": len(self.history.questions) + len(self.other_history.questions),
            "returned": self.history.returned + self.other_history.returned,
        }
        for storage in (self.storage, self.other_storage):
            storage.asked.clear()
        for history in (self.history, self.other_history):
            history.questions.clear()
            history.returned = 0
        return costs


def test_seven_rules_cost_as_much_at_step_100_000_as_at_step_10(layouts: Mapping[str, StepLayout]):
    early, late = Runs(layouts), Runs(layouts)
    assert early.evaluate(10) == late.evaluate(100_000) == 3
    costs = early.costs()
    assert late.costs() == costs
    # Tensors are compared with those of the two training steps before: the evaluation between is not read.
    # Of the other run that step alone is read.
    assert costs["steps read"] == 3
    assert costs["gets"] == 3 * 2 * len(WORKERS)
    assert costs["gets of the other"] == 2 * len(WORKERS)
    assert costs["questions"] <= 8
    assert costs["returned"] <= 24


def test_rules_that_look_at_the_step_alone_cost_two_gets_a_worker(layouts: Mapping[str, StepLayout]):
    for step in (10, 100_000):
        runs = Runs(layouts)
        runs.evaluate(step, *(runs.rules[number] for number in (0, 1, 4)))
        costs = runs.costs()
        assert costs["gets"] == 2 * len(WORKERS)
        assert costs["questions"] <= 1


def test_the_next_step_costs_its_own_files_since_those_before_are_warm(
    layouts: Mapping[str, StepLayout],
):
    runs = Runs(layouts)
    runs.evaluate(100_000)
    runs.costs()
    for step in (100_001, 100_002, 100_003):
        runs.evaluate(step)
        costs = runs.costs()
        assert costs["gets"] == costs["gets of the other"] == 2 * len(WORKERS)


def test_a_value_of_long_ago_costs_two_gets_and_its_tensors_none(layouts: Mapping[str, StepLayout]):
    runs = Runs(layouts)
    view = runs.view
    view.move_to(100_000, WORKERS)
    runs.costs()
    assert view.tensor_names(step=77) == ["gradient/a", "loss", "weight/a"]
    assert view.tensor_names(step=79) == ["loss", "weight/a"]
    assert view.tensor("gradient/a").prev_steps(100_000, 3) == [99_997, 99_998, 100_000]
    assert view.tensor_names(mode=EVAL) == ["loss", "weight/a"]
    assert view.tensor("loss").first_seen(EVAL) == 4
    assert view.workers() == list(WORKERS)
    assert view.modes() == {TRAIN, EVAL}
    assert runs.costs()["gets"] == 0
    assert view.tensor("loss").value(77, worker="worker_2") == 77
    assert runs.storage.gets("events") == ["events/000000000077/000000000077_worker_2.tfevents"]
    assert runs.costs()["gets"] == len(WORKERS) + 1
    assert view.tensor("weight/a").value(77, worker="worker_2").tolist() == [8.0] * 4
    assert runs.costs()["gets"] == 0


def test_a_step_of_a_mode_is_found_in_few_questions(layouts: Mapping[str, StepLayout]):
    runs = Runs(layouts)
    runs.view.move_to(100_000, WORKERS)
    for mode, mode_step, step in ((TRAIN, 79_999, 99_998), (TRAIN, 12, 15), (EVAL, 3_000, 15_004)):
        assert runs.view.global_step(mode, mode_step) == step
        costs = runs.costs()
        assert costs["questions"] <= 20
        assert costs["returned"] <= 100
    assert runs.view.global_step(TRAIN, 80_000) == 100_000
    assert runs.view.global_step(TRAIN, 80_001) is None


def test_who_requires_tensors_has_each_file_fetched_once(layouts: Mapping[str, StepLayout]):
    class Requiring(Rule):
        def set_required_tensors(self, step: int) -> None:
            self.req_tensors.add(".*", [step - 1, step], should_match_regex=True)

        def invoke_at_step(self, step: int) -> bool:
            return all(tensor.value(step).size for tensor in self.req_tensors.get())

    runs = Runs(layouts)
    assert runs.evaluate(100_001, Requiring(runs.view)) == 1
    assert len(runs.storage.gets(INDEX_FOLDER)) == 2 * len(WORKERS)
    assert len(runs.storage.gets("events")) == len(set(runs.storage.gets("events"))) == 2


def test_the_values_of_all_workers_are_fetched_as_soon_as_those_of_a_second_are_asked_for(
    layouts: Mapping[str, StepLayout],
):
    runs = Runs(layouts)
    runs.view.move_to(100_000, WORKERS)
    loss = runs.view.tensor("loss")
    loss.value(100_000, worker="worker_0")
    assert len(runs.storage.gets("events")) == 1
    loss.value(100_000, worker="worker_1")
    assert len(runs.storage.gets("events")) == 3
    loss.value(100_000, worker="worker_2")
    assert len(runs.storage.gets("events")) == 3


def test_a_long_backlog_takes_no_more_memory_than_a_short_one(layouts: Mapping[str, StepLayout]):
    history = EndlessHistory(layouts)
    view = view_of(EndlessRun(), history, index_budget=100_000)

    def walk(steps: range) -> int:
        for step in steps:
            view.move_to(step, WORKERS)
            view.tensor("loss").value(step)
            view.tensor("weight/a").prev_steps(step, 3)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        walk(range(1000))
        before = walk(range(1000, 1500))
        after = walk(range(1500, 2000))
    finally:
        tracemalloc.stop()
    # What is left of a step is its summary; events are kept up to a budget of their own.
    assert after - before < 500 * 4000


def test_what_was_read_of_earlier_steps_can_be_dropped(layouts: Mapping[str, StepLayout]):
    runs = Runs(layouts)
    for step in (100, 101):
        runs.view.move_to(step, WORKERS)
    runs.costs()
    runs.view.forget_before(101)
    runs.view.tensor("loss").workers(101)
    assert runs.costs()["gets"] == 0
    runs.view.tensor("loss").workers(100)
    assert sorted(runs.storage.gets()) == [index_key(100, worker) for worker in WORKERS]


@pytest.mark.parametrize(("budget", "read_again"), [(0, True), (1 << 20, False)])
def test_only_so_much_of_earlier_steps_is_kept(
    layouts: Mapping[str, StepLayout], budget: int, read_again: bool
):
    far = FarStorage(EndlessRun())
    view = view_of(EndlessRun(), EndlessHistory(layouts), far=far, index_budget=budget)
    for step in (100, 101):
        view.move_to(step, WORKERS)
    far.asked.clear()
    view.tensor("loss").workers(101)
    assert far.gets() == []
    view.tensor("loss").workers(100)
    assert bool(far.gets()) is read_again


def test_files_of_workers_that_were_not_asked_for_before_are_read_once():
    """First the file of one worker is read, to see which step it saved before; then those of all."""
    storage = FarStorage(EndlessRun())
    problems: list[str] = []
    files = IndexFiles(storage, lambda key, error: problems.append(key))
    for workers in (WORKERS[:1], WORKERS, WORKERS[1:], WORKERS[:1], WORKERS):
        assert tuple(files.of(3, workers)) == workers
    assert sorted(storage.asked) == [("get", index_key(3, worker)) for worker in WORKERS]
    assert not problems
