"""The numbers that steps are saved under, where evaluations have that of a training step."""

from itertools import groupby
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from smdebug.mode_keys import ModeKeys
from smdebug.saving.planning.record_numbers import RecordNumbers
from smdebug.saving.planning.save_plan import NO_MEMBERS
from smdebug.saving.planning.step_clock import StepClock

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
BEGIN = StepClock(by_training=True)


def saved(moments):
    """Run through pairs of a mode and of what is due; return the numbers and modes of what is saved."""
    clock, numbers, found = BEGIN, RecordNumbers(), []
    for place, (mode, due) in enumerate(moments):
        clock = clock.in_mode(mode).next()
        later = [due for mode, due in moments[place + 1 :] if mode is TRAIN]
        if numbers.placed(due, clock, is_training_due=bool(later and later[0])):
            record = numbers.clock_of(clock)
            numbers.take(record)
            found.append((record.step, mode))
    return found


def test_an_evaluation_has_the_number_of_the_training_step_before_it():
    training = [(TRAIN, step % 10 == 0) for step in range(50)]
    assert saved([*training, (EVAL, 1), *training])[-6:] == [
        (49, EVAL),
        *((step, TRAIN) for step in range(50, 91, 10)),
    ]


def test_it_has_the_next_number_if_that_step_was_saved_and_training_goes_on_behind_it():
    found = saved([(TRAIN, 1), (TRAIN, 1), (EVAL, 1), (TRAIN, 1), (TRAIN, 0), (TRAIN, 1)])
    assert found == [(0, TRAIN), (1, TRAIN), (2, EVAL), (3, TRAIN), (4, TRAIN)]


def test_an_evaluation_that_follows_each_step_takes_no_number_that_training_wants():
    found = saved([(TRAIN, 1), (EVAL, 1)] * 5 + [(TRAIN, 0), (EVAL, 1)] * 2)
    assert found[:5] == [(0, TRAIN), (1, EVAL), (2, TRAIN), (3, TRAIN), (4, TRAIN)]
    assert found[5:] == [(5, EVAL), (6, EVAL)]


def test_evaluations_after_epochs_of_a_few_steps_are_saved():
    found = saved([(TRAIN, 1), (TRAIN, 1), (TRAIN, 1), (EVAL, 1)] * 3)
    assert [number for number, mode in found if mode is EVAL] == [3, 6, 9]


def test_an_evaluation_before_the_training_is_step_0_and_the_training_begins_at_1():
    assert saved([(EVAL, 1), (TRAIN, 1)]) == [(0, EVAL), (1, TRAIN)]


def test_values_of_a_step_without_a_number_belong_to_the_one_that_has_it():
    numbers, first = RecordNumbers(), BEGIN.in_mode(TRAIN).next()
    numbers.take(first)
    evaluation = first.in_mode(EVAL).next()
    record = numbers.clock_of(evaluation)
    numbers.take(record)
    second = evaluation.in_mode(TRAIN).next()
    assert (second.step, record.step) == (1, 1)
    assert numbers.clock_of(second) == record
    assert numbers.after_last(second).step == 2


@given(st.lists(st.tuples(st.sampled_from([TRAIN, EVAL, ModeKeys.PREDICT]), st.booleans())))
def test_numbers_ascend_and_nothing_of_training_that_is_due_is_lost_for_good(moments):
    # Consecutive steps of evaluation are one evaluation, which the recorder saves once.
    moments = [next(block) for _, block in groupby(moments, key=itemgetter(0))]
    found = saved(moments)
    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers))
    trained = [due for mode, due in moments if mode is TRAIN]
    kept = sum(mode is TRAIN for _, mode in found)
    assert kept >= sum(trained) // 2


def test_an_evaluation_of_a_resumed_training_leaves_the_number_of_its_last_step():
    resumed = StepClock.resumed(60, {TRAIN: 60})._replace(by_training=True)
    numbers, evaluation = RecordNumbers(resumed), resumed.in_mode(EVAL).next()
    assert numbers.placed(1, evaluation) == 1
    assert numbers.clock_of(evaluation).step == 61


def test_a_step_with_nothing_due_takes_no_number():
    assert RecordNumbers().placed(NO_MEMBERS, BEGIN.in_mode(TRAIN).next()) == NO_MEMBERS
