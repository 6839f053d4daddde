"""The step and mode of a training."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.mode_keys import ModeKeys
from smdebug.saving.planning.step_clock import StepClock

modes = st.lists(st.sampled_from(ModeKeys), max_size=30)


def run_through(sequence, clock=None):
    clock = clock or StepClock()
    for mode in sequence:
        clock = clock.in_mode(mode).next()
    return clock


def test_nothing_has_run_before_the_first_step():
    clock = StepClock()
    assert (clock.step, clock.mode, clock.mode_step) == (-1, ModeKeys.GLOBAL, -1)
    assert clock.mode_steps == {ModeKeys.GLOBAL: -1}
    assert clock.next().step == 0


def test_each_mode_counts_its_own_steps():
    train, evaluate = ModeKeys.TRAIN, ModeKeys.EVAL
    clock = run_through([train, train, evaluate, train])
    assert clock.mode_steps == {train: 2, evaluate: 0, ModeKeys.GLOBAL: 3}
    assert (clock.step, clock.mode_step) == (3, 2)


@given(modes)
def test_a_mode_step_is_the_number_of_earlier_steps_of_that_mode(sequence):
    clock = run_through(sequence)
    assert clock.step == len(sequence) - 1
    for mode in set(sequence) - {ModeKeys.GLOBAL}:
        assert clock.mode_steps[mode] == sequence.count(mode) - 1
    for mode in ModeKeys:
        expected = clock.step if mode is ModeKeys.GLOBAL else sequence.count(mode) - 1
        assert clock.in_mode(mode).mode_step == expected


@given(modes, modes)
def test_a_resumed_clock_continues_where_the_other_stopped(before, after):
    stopped = run_through(before)
    resumed = StepClock.resumed(stopped.step, stopped.mode_steps)
    assert (
        run_through(after, resumed).mode_steps.items()
        >= run_through(after, stopped.in_mode(ModeKeys.GLOBAL)).mode_steps.items()
    )


def test_a_clock_never_changes():
    clock = run_through([ModeKeys.TRAIN])
    before = clock.mode_steps
    clock.next()
    clock.in_mode(ModeKeys.EVAL).next()
    assert clock.mode_steps == before
    assert clock.in_mode(ModeKeys.TRAIN) is clock


def test_numbers_of_training_are_not_moved_by_evaluations():
    train, evaluate = ModeKeys.TRAIN, ModeKeys.EVAL
    clock = run_through([train] * 3 + [evaluate] * 5, StepClock(by_training=True))
    assert (clock.step, clock.mode_step) == (2, 4)
    assert clock.number_after(7) == 2
    assert clock.in_mode(train).next().step == 3
    assert clock.in_mode(train).number_after(2) == 4


def test_an_evaluation_before_the_training_has_the_first_number():
    clock = run_through([ModeKeys.EVAL, ModeKeys.EVAL], StepClock(by_training=True))
    assert clock.step == 0
    assert clock.in_mode(ModeKeys.TRAIN).next().step == 1


@pytest.mark.parametrize("by_training", [True, False])
@pytest.mark.parametrize("begins", [StepClock(), StepClock.resumed(9, {ModeKeys.TRAIN: 7, ModeKeys.EVAL: 1})])
def test_every_step_of_every_mode_counts_as_one(by_training, begins):
    began = begins._replace(by_training=by_training)
    for run, count in (([ModeKeys.EVAL] * 2, 2), ([ModeKeys.TRAIN] * 3 + [ModeKeys.EVAL] * 5, 8), ([], 0)):
        assert run_through(run, began).steps_since(began) == count
