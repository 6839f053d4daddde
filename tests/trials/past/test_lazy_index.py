"""The steps of a long run are found in its history, without reading a file of it."""

from __future__ import annotations

import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.trials.past.history import MemoryHistory, StepSummary
from smdebug.trials.past.lazy_index import LazyIndex

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
BOTH = ("worker_0", "worker_1")
LAYOUTS = [
    StepLayout("t", ("loss", "w"), "TRAIN", 0, BOTH),
    StepLayout("e", ("loss",), "EVAL", 7, BOTH),
    StepLayout("late", ("late", "loss"), "TRAIN", 600, BOTH),
]


class NoFiles:
    """Index files that must not be read."""

    def of(self, step, workers):
        raise AssertionError(f"read the files of step {step}")

    def forget_gaps(self):
        pass


def made():
    """Every third step was saved; two of three are of the training."""
    steps, counts = [], {TRAIN: 0, EVAL: 0}
    for step in range(0, 900, 3):
        mode = EVAL if step % 9 == 3 else TRAIN
        layout = "e" if mode is EVAL else "t" if step < 600 else "late"
        workers = BOTH if step % 2 == 0 else BOTH[:1]
        steps.append(StepSummary(step, mode, counts[mode], workers, layout))
        counts[mode] += 2
    return steps


STEPS = made()


def index_at(through):
    index = LazyIndex(MemoryHistory(STEPS, LAYOUTS), NoFiles(), 2)
    index.limit_to(through)
    return index


@pytest.mark.parametrize("through", [-1, 0, 3, 100, 597, 600, 897, 5000])
@pytest.mark.parametrize("mode", [GLOBAL, TRAIN, EVAL])
def test_steps_and_their_numbers_are_those_of_the_history_up_to_a_step(through, mode):
    index = index_at(through)
    known = [each for each in STEPS if each.step <= through and mode in (GLOBAL, each.mode)]
    numbers = [each.step if mode is GLOBAL else each.mode_step for each in known]
    assert index.steps(mode) == numbers
    assert index.numbered(mode) == [(number, each.step) for number, each in zip(numbers, known, strict=True)]
    with_w = [pair for pair, each in zip(index.numbered(mode), known, strict=True) if each.layout == "t"]
    assert list(index.steps_of("w", mode)) == with_w
    assert list(index.back_from("w", 10_000, mode)) == with_w[::-1]
    firsts = [each.step for each in known if each.layout == "t"]
    assert index.first_seen("w", mode) == (firsts[0] if firsts else None)


@pytest.mark.parametrize("mode", [TRAIN, EVAL, GLOBAL])
def test_the_newest_step_of_a_mode_is_found_near_and_far(mode):
    index = index_at(800)
    known = [each for each in STEPS if each.step <= 800 and mode in (GLOBAL, each.mode)]
    for asked in [*range(-1, 12), *range(100, 420, 7), 799, 800, 801, 5000, 10.5, float("inf")]:
        numbered = [each for each in known if (each.step if mode is GLOBAL else each.mode_step) <= asked]
        assert index.newest_in(mode, asked) == (numbered[-1] if numbered else None), asked
        found = index.global_step(asked, mode) if asked == int(min(asked, 9999)) else None
        exact = [each.step for each in numbered if (each.step if mode is GLOBAL else each.mode_step) == asked]
        assert found == (exact[0] if exact else None), asked


def test_a_walk_back_begins_at_the_step_itself():
    index = index_at(897)
    assert [step for step, _ in index.back_from("w", 12, GLOBAL)] == [9, 6, 0]
    assert [step for step, _ in index.back_from("w", 8, TRAIN)] == [8, 6, 4, 2, 0]
    assert [step for step, _ in index.back_from("w", 7, TRAIN)] == [6, 4, 2, 0]
    assert list(index.back_from("w", -1, TRAIN)) == []
    assert list(index.back_from("none", 12, GLOBAL)) == []


def test_a_step_is_known_by_its_number_alone():
    index = index_at(30)
    assert index.mode_of(3) == (EVAL, 0)
    assert index.mode_of(6) == (TRAIN, 2)
    assert index.mode_of(6.0) == (TRAIN, 2)
    assert [index.mode_of(step) for step in (-3, 4, 33, 6.5, None, "6")] == [None] * 6
    assert index.newest() == STEPS[10]
    assert index_at(-1).newest() is None


def test_names_are_those_of_the_steps_so_far():
    index = index_at(599)
    assert index.tensor_names() == ("loss", "w")
    assert index.tensor_names(EVAL) == ("loss",)
    assert list(index.tensor_names_at(3, GLOBAL)) == ["loss"]
    assert list(index.tensor_names_at(4, GLOBAL)) == []
    assert [index.has_tensor(name) for name in ("w", "late", "none")] == [True, False, False]
    assert list(index.modes()) == [TRAIN, EVAL]
    index.limit_to(600)
    assert index.tensor_names() == ("late", "loss", "w")
    assert index.first_seen("late", TRAIN) == 600
    assert index.first_seen("late", EVAL) is None
    index.limit_to(3)
    assert list(index.modes()) == [TRAIN]
    assert index.tensor_names(EVAL) == ()


def test_workers_are_those_that_have_written_so_far():
    assert index_at(3).workers == frozenset(BOTH)
    assert index_at(-1).workers == frozenset()
    by_step = index_at(9).workers_by_step
    assert list(by_step) == [0, 3, 6, 9]
    assert len(by_step) == 4
    assert (by_step[3], by_step[6]) == (frozenset(BOTH[:1]), frozenset(BOTH))
    assert by_step.get(12) is None
    with pytest.raises(KeyError):
        by_step[4]
