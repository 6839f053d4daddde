"""When the steps of a run were saved."""

from __future__ import annotations

from smdebug.runs.curves.moments import Moments


def test_time_begins_with_the_first_saved_step():
    assert Moments([0, 10, 20], [1000.0, 1002.5, 1010.0]).knots(100) == [(0, 0.0), (10, 2.5), (20, 10.0)]


def test_a_clock_that_was_set_back_stands_still():
    assert [time for _, time in Moments([0, 1, 2], [10.0, 15.0, 12.0]).knots(100)] == [0.0, 5.0, 5.0]


def test_a_step_that_is_written_again_replaces_those_after_it():
    moments = Moments([0, 1, 2], [10.0, 11.0, 12.0])
    moments.note(1, 20.0)
    assert moments.knots(100) == [(0, 0.0), (1, 10.0)]


def test_steps_without_a_time_make_no_axis():
    moments = Moments()
    moments.note(0, None)
    moments.note(1, 5.0)
    assert moments.knots(100) == []


def test_a_long_run_keeps_the_first_and_the_last_moment():
    knots = Moments(range(10_000), map(float, range(10_000))).knots(50)
    assert len(knots) == 50
    assert [knots[0], knots[-1]] == [(0, 0.0), (9999, 9999.0)]
