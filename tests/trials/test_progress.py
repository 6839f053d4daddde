from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.trials.progress import RunProgress, StepState

AVAILABLE, UNAVAILABLE = StepState.AVAILABLE, StepState.UNAVAILABLE
NOT_YET = StepState.NOT_YET_AVAILABLE


def after(*arrivals: tuple[int, int], workers: int = 2, window: int = 1000) -> RunProgress:
    progress = RunProgress(num_workers=workers, wait_window=window)
    for step, worker in arrivals:
        progress = progress.with_arrival(step=step, worker=f"worker_{worker}")
    return progress


def test_the_states_have_the_numbers_they_always_had():
    assert [(state.name, state.value) for state in StepState] == [
        ("UNAVAILABLE", 0),
        ("AVAILABLE", 1),
        ("NOT_YET_AVAILABLE", 2),
    ]


def test_a_step_is_readable_once_every_worker_has_written_it():
    half_written = after((5, 0))
    assert half_written.state_of(5) is NOT_YET
    written = half_written.with_arrival(step=5, worker="worker_1")
    assert written.state_of(5) is AVAILABLE
    assert written.settled_through == 5


def test_the_same_worker_twice_is_one_worker():
    assert after((5, 0), (5, 0)).state_of(5) is NOT_YET


def test_one_complete_step_settles_every_earlier_one():
    progress = after((2, 0), (5, 0), (5, 1))
    assert progress.state_of(2) is AVAILABLE  # one worker of two, but nothing more will come
    assert progress.state_of(3) is UNAVAILABLE
    assert progress.state_of(6) is NOT_YET


def test_at_the_end_everything_is_settled():
    progress = after((2, 0), (5, 0)).at_the_end()
    assert progress.state_of(5) is AVAILABLE
    assert progress.state_of(4) is UNAVAILABLE
    assert progress.state_of(6) is UNAVAILABLE
    assert progress.settled_through == 5


def test_an_empty_run_that_ended_has_nothing():
    assert RunProgress().at_the_end().state_of(0) is UNAVAILABLE
    assert RunProgress().state_of(0) is NOT_YET


def test_a_new_value_leaves_the_old_one_as_it_was():
    before = after((5, 0))
    before.with_arrival(step=5, worker="worker_1")
    assert before.state_of(5) is NOT_YET
    assert before.workers_by_step == {5: {"worker_0"}}


def test_thirteen_steps_of_one_of_two_workers_and_a_window_of_ten_settle_five():
    progress = after(*((step, 0) for step in range(13)), window=10)
    assert progress.settled_through == 4
    assert progress.state_of(4) is AVAILABLE
    assert progress.state_of(5) is NOT_YET


def test_the_window_counts_steps_not_step_numbers():
    progress = after(*((step * 100, 0) for step in range(13)), window=10)
    assert progress.settled_through == 400


def test_what_is_counted_moves_to_a_complete_step_and_else_by_half_a_window():
    progress = after(*((step, 0) for step in range(25)), *((s, 1) for s in range(5)), window=10)
    assert progress.settled_through == 14
    assert [progress.counted_after(counted) for counted in (-1, 4, 9, 14)] == [4, 9, 14, 14]
    assert after((7, 0), (7, 1)).counted_after(-1) == 7
    assert progress.at_the_end().counted_after(-1) == 24


@given(steps=st.integers(0, 60), window=st.integers(0, 12), every=st.integers(1, 7))
def test_how_often_one_looks_does_not_change_what_the_window_settles(steps, window, every):
    one_by_one = after(*((step, 0) for step in range(steps)), window=window)
    known: dict[int, set[str]] = {}
    seldom = RunProgress(num_workers=2, workers_by_step=known, wait_window=window)
    for begin in range(0, steps, every):
        news = range(begin, min(begin + every, steps))
        known.update({step: {"worker_0"} for step in news})
        seldom = seldom.with_news(news)
    assert seldom.settled_through == one_by_one.settled_through
    assert seldom.open_steps == one_by_one.open_steps
    assert len(seldom.open_steps) <= window


def test_fewer_workers_than_thought_complete_what_is_open():
    progress = after((1, 0), (2, 0))
    assert progress.with_num_workers(1).settled_through == 2
    assert progress.with_num_workers(2) is progress


class TestAStepOfAMode:
    """has_passed_step(q, mode), as the table of the old library's behaviour has it."""

    steps = (0, 2, 4)
    of = {0: 10, 2: 20, 4: 30}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("asked", "state"),
        [
            (0, AVAILABLE),
            (1, UNAVAILABLE),
            (2, AVAILABLE),
            (3, NOT_YET),
            (4, NOT_YET),
            (5, NOT_YET),
        ],
    )
    def test_while_the_run_continues(self, asked, state):
        progress = after((10, 0), (20, 0), (20, 1), (30, 0))
        assert progress.state_in_mode(asked, self.steps, self.of) is state

    @pytest.mark.parametrize(("asked", "state"), [(3, UNAVAILABLE), (4, AVAILABLE), (5, UNAVAILABLE)])
    def test_after_its_end(self, asked, state):
        progress = after((10, 0), (20, 0), (20, 1), (30, 0)).at_the_end()
        assert progress.state_in_mode(asked, self.steps, self.of) is state

    def test_in_a_mode_without_steps(self):
        assert after().state_in_mode(0, (), {}) is NOT_YET
        assert after().at_the_end().state_in_mode(0, (), {}) is UNAVAILABLE


arrivals = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=30)


@given(arrivals)
def test_the_last_settled_step_is_the_highest_complete_one(arrived):
    progress = after(*arrived, workers=3)
    complete = [step for step in range(13) if len({w for s, w in arrived if s == step}) == 3]
    assert progress.settled_through == max(complete, default=-1)


@given(arrivals, st.randoms())
def test_the_order_of_arrival_does_not_matter_within_a_window(arrived, random):
    shuffled = random.sample(arrived, len(arrived))
    in_order, in_disorder = after(*arrived), after(*shuffled)
    assert [in_order.state_of(step) for step in range(14)] == [in_disorder.state_of(s) for s in range(14)]


@given(arrivals)
def test_the_state_of_a_global_step_is_that_of_the_mode_whose_steps_are_global(arrived):
    progress = after(*arrived)
    known = sorted(progress.workers_by_step)
    for value in (progress, progress.at_the_end()):
        for step in range(14):
            in_mode = value.state_in_mode(step, known, {s: s for s in known})
            assert in_mode is value.state_of(step)


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["a", "b"])), max_size=20))
def test_all_known_steps_are_settled_exactly_when_each_is(arrivals):
    progress = RunProgress(num_workers=2, wait_window=4)
    for step, worker in arrivals:
        progress = progress.with_arrival(step=step, worker=worker)
        each = all(map(progress.is_settled, progress.workers_by_step))
        assert progress.has_all_settled == each
    assert progress.at_the_end().has_all_settled
