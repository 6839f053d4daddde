"""A view as of a step against its oracle: a trial over a copy of the run that ends there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.files import names
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.reductions import get_reduction_tensor_name
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import no_refresh
from smdebug.trials.past.history import ChainedHistory, MemoryHistory, StepSummary
from smdebug.trials.past.listed_history import ListedHistory
from tests.support.looking import each
from tests.trials.viewing import (
    COLLECTIONS,
    FarStorage,
    never,
    outcome,
    plain,
    recorded,
    through,
    view_of,
    written_by,
)
from tests.trials.writing import begin, write_step

GLOBAL, TRAIN, EVAL, PREDICT = ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
NAMES = ["loss", "x:0", "weight/1", "weight/2", "gradient/1"]
REDUCTIONS = [("mean", False), ("max", True)]

HELD = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(["value", "reductions", "shape", "shaped", "both", "text"]),
    min_size=1,
)


@st.composite
def runs(draw: Any) -> MemoryStorage:
    """A run of up to three workers, some of which skip steps, with tensors that come and go."""
    workers = draw(st.integers(1, 3))
    modes = draw(st.sampled_from([[GLOBAL], [TRAIN], [TRAIN, EVAL], [EVAL, GLOBAL, PREDICT]]))
    storage = MemoryStorage()
    begin(storage, workers, COLLECTIONS)
    step, mode_steps = -1, dict.fromkeys(modes, -1)
    for _ in range(draw(st.integers(1, 6))):
        gap = draw(st.sampled_from([1, 1, 2, 5, 1500]))
        step += gap
        mode = draw(st.sampled_from(modes))
        # A run that went back to a checkpoint may count a step of a mode twice.
        mode_steps[mode] = max(0, mode_steps[mode] + draw(st.sampled_from([0, 1, 1, 1, 2])))
        there = draw(st.sets(st.integers(0, workers - 1), min_size=1))
        for worker in sorted(there if draw(st.booleans()) else range(workers)):
            tensors, shapes = made_of(draw(HELD), step * 10 + worker)
            write_step(
                storage,
                step,
                tensors,
                worker=worker,
                mode=mode,
                mode_step=mode_steps[mode],
                shapes=shapes,
            )
    return storage


def made_of(held: dict[str, str], number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    tensors: dict[str, Any] = {}
    shapes = {}
    for name, kind in held.items():
        if kind == "text":
            tensors[name] = np.array(["a", str(number)])
        if kind in ("value", "shaped", "both"):
            tensors[name] = np.array([number, 1.5], np.float32)
        if kind in ("reductions", "both"):
            for reduction, of_abs in REDUCTIONS:
                saved = get_reduction_tensor_name(name, reduction, of_abs)
                tensors[saved] = np.float32(number + of_abs)
        if kind in ("shape", "shaped", "both"):
            shapes[name] = (2, number)
    return tensors, shapes


Question = tuple[Any, Callable[[], Any]]


def questions(trial: Any, steps: list[int]) -> Iterator[Question]:
    """All queries of a trial and its tensors about these steps."""
    yield from questions_about_the_run(trial)
    for step in steps:
        yield from questions_about_a_step(trial, step)
    for name in [*NAMES, "x", "nobody"]:
        yield ("has", name), partial(trial.has_tensor, name)
        yield ("tensor", name), lambda name=name: trial.tensor(name).name
        if trial.has_tensor(name):
            yield from questions_about_a_tensor(trial.tensor(name), steps)


def questions_about_the_run(trial: Any) -> Iterator[Question]:
    yield "modes", lambda: list(trial.modes())
    yield "workers", trial.workers
    yield "num_workers", lambda: trial.num_workers
    yield "collections", lambda: sorted(trial.collections())
    yield "losses", lambda: trial.collection("losses").include_regex
    yield "ended", lambda: trial.loaded_all_steps
    yield "last complete", lambda: trial.last_complete_step
    yield "by workers", lambda: trial.workers_for_global_step
    yield "in w", lambda: [str(tensor) for tensor in trial.tensors_in_collection("w")]
    for mode in (None, GLOBAL, TRAIN, EVAL, PREDICT):
        yield ("steps", mode), partial(trial.steps, mode)
        yield ("all steps", mode), partial(trial.steps, mode, show_incomplete_steps=True)
        yield ("names", mode), partial(trial.tensor_names, mode=mode)
        yield ("losses", mode), partial(trial.tensor_names, mode=mode, collection="losses")


def questions_about_a_step(trial: Any, step: int) -> Iterator[Question]:
    yield ("mode", step), partial(trial.mode_modestep, step)
    for mode in (GLOBAL, TRAIN, EVAL):
        at = (step, mode)
        names = partial(trial.tensor_names, step=step, mode=mode)
        yield ("state", at), partial(trial.has_passed_step, step, mode)
        yield ("global", at), partial(trial.global_step, mode, step)
        yield ("names", at), names
        yield ("regex", at), partial(names, regex="^w")
        yield ("all", at), partial(names, collection="w")
        yield ("labels", at), partial(trial.labels, step, mode)


def questions_about_a_tensor(tensor: Any, steps: list[int]) -> Iterator[Question]:
    name = tensor.name
    yield ("original", name), lambda: tensor.original_name
    for mode in (None, TRAIN, EVAL):
        yield ("steps", name, mode), partial(tensor.steps, mode)
        yield ("incomplete", name, mode), partial(tensor.steps, mode, True)
        yield ("first", name, mode), partial(tensor.first_seen, mode)
        yield ("values", name, mode), partial(tensor.values, mode)
    for at in product(steps, (GLOBAL, TRAIN)):
        step, mode = at
        yield ("back", name, at), partial(tensor.prev_steps, step, 2, mode)
        yield ("all back", name, at), partial(tensor.prev_steps, step, mode=mode)
        yield ("workers", name, at), partial(tensor.workers, *at)
        yield ("shape", name, at), partial(tensor.shape, *at)
        yield ("reductions", name, at), partial(tensor.reduction_values, *at)
        for worker in (None, "worker_1", "nobody"):
            of = (*at, worker)
            largest = partial(tensor.reduction_value, step, "max", mode, worker, abs=True)
            yield ("value", name, of), partial(tensor.value, *of)
            yield ("max", name, of), largest


def compare(view: Any, oracle: Any, steps: list[int]) -> None:
    oracle.refresh_data()
    with no_refresh([oracle]):  # its run does not change
        asked = zip(questions(view, steps), questions(oracle, steps), strict=True)
        for (what, of_view), (_, of_oracle) in asked:
            assert outcome(of_view) == outcome(of_oracle), what


def histories(storage: MemoryStorage, step: int) -> Iterator[Any]:
    """The ways to give a view the history before that step."""
    recorder = recorded(storage, step - 1)
    yield recorder
    yield MemoryHistory.from_dict(recorder.memory.to_dict())
    far = FarStorage(storage, may_list=True)
    recent = MemoryHistory.recent(recorder, step - 1, steps=2)
    yield ChainedHistory(recent, ListedHistory(far, step - 1))
    # Steps at which nobody has looked, but for what they hold.
    unseen = [StepSummary.unread(s.step, s.workers) for s in recorder.steps.values()]
    yield MemoryHistory(unseen, recorder.layouts())


@pytest.fixture(autouse=True)
def nothing_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", never)


@settings(max_examples=60, deadline=None)
@given(storage=runs(), data=st.data())
def test_a_view_answers_as_a_trial_would_over_a_run_that_ended_there(
    storage: MemoryStorage, data: Any
) -> None:
    complete = [step for step, names in written_by(storage).items() if len(names) == len(collected(storage))]
    for step in complete:
        kinds = list(histories(storage, step))
        history = data.draw(st.sampled_from(kinds), label=f"history before {step}")
        view = view_of(storage, history, far=FarStorage(storage))
        view.move_to(step, written_by(storage)[step])
        near = {number for known in written_by(storage) for number in (known, known + 1)}
        steps = [
            -1,
            *(number for number in range(9) if number not in near),
            *sorted(near),
            step + 7,
        ]
        compare(view, plain(through(storage, step), view.path), steps)


def collected(storage: MemoryStorage) -> list[str]:
    return list(storage.list(names.COLLECTIONS_FOLDER))


@settings(max_examples=30, deadline=None)
@given(storage=runs(), data=st.data())
def test_a_view_that_moves_about_answers_as_one_that_is_new(storage: MemoryStorage, data: Any) -> None:
    workers = written_by(storage)
    recorder = recorded(storage, max(workers))
    moving = view_of(storage, recorder, index_budget=data.draw(st.sampled_from([0, 1 << 20])))
    for _ in range(4):
        step = data.draw(st.sampled_from(list(workers)))
        moving.move_to(step, workers[step])
        new = view_of(storage, recorder)
        new.move_to(step, workers[step])
        compare(moving, new, [0, 1, 2, *workers, step + 1])


@settings(max_examples=30, deadline=None)
@given(storage=runs())
def test_steps_looked_at_one_after_the_other_need_no_record(storage: MemoryStorage) -> None:
    alone, helped = view_of(storage, MemoryHistory()), view_of(storage, recorded(storage, 10**6))
    for step, workers in each(written_by(storage).items()):
        assert alone.move_to(step, workers) == helped.move_to(step, workers)
        compare(alone, helped, [0, 1, 2, step - 1, step, step + 1])
