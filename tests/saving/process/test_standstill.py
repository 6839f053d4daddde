"""Where a rank stands, on a clock that the test sets."""

import sys
import threading

import pytest

from smdebug.files.notes.stalls import ENDED, MOVES, STANDS, WENT_ON
from smdebug.saving.process.standstill import (
    FIRST_STEPS,
    Progress,
    Standstill,
    StandstillThread,
    stack_of,
    stall_seconds,
)

LIMIT = 60.0


class Rank:
    """A rank that is looked at each second."""

    def __init__(self, limit=LIMIT):
        self.now, self.step, self.phase, self.moved_at, self.is_over = 0.0, 0, "data", None, False
        self.written = []
        self.fails = False
        self.standstill = Standstill(
            self.progress,
            self.write,
            limit,
            thread=threading.get_ident(),
            clock=lambda: self.now,
            wall=lambda: self.now + 1e9,
        )

    def progress(self):
        return None if self.is_over else Progress(self.step, self.phase, self.moved_at, self.step)

    def write(self, stall):
        if self.fails:
            raise OSError
        self.written.append(stall)

    def wait(self, seconds):
        for _ in range(int(seconds)):
            self.now += 1
            self.standstill.look()
        return self

    def trains(self, steps=10, seconds=1):
        for _ in range(steps):
            self.moves("forward")
            self.step += 1
            self.wait(seconds)
        return self

    def moves(self, phase):
        self.phase, self.moved_at = phase, self.now

    @property
    def states(self):
        return [(stall.state, round(stall.seconds / LIMIT)) for stall in self.written]


def test_a_rank_that_stands_says_so_once_and_again_at_multiples_of_its_limit():
    rank = Rank().trains()
    rank.wait(LIMIT - 2)
    assert not rank.written
    rank.wait(2)
    (stall,) = rank.written
    assert (stall.state, stall.step, stall.phase, stall.limit) == (STANDS, 10, "forward", LIMIT)
    assert stall.since + stall.seconds == pytest.approx(rank.now + 1e9)
    rank.wait(12 * LIMIT)
    assert rank.states == [(STANDS, 1), (STANDS, 2), (STANDS, 10)]


def test_it_says_that_it_went_on_or_ended():
    rank = Rank().trains().wait(1.5 * LIMIT)
    rank.trains(1)
    rank.trains(5)
    assert rank.states == [(STANDS, 1), (WENT_ON, 2)]
    rank.wait(2 * LIMIT)
    rank.standstill.end()
    rank.standstill.end()
    assert rank.states[2:] == [(STANDS, 1), (STANDS, 2), (ENDED, 2)]
    healthy = Rank().trains()
    healthy.standstill.end()
    assert not healthy.written


def test_a_rank_that_evaluates_moves_without_an_update():
    rank = Rank().trains()
    for _ in range(int(1.5 * LIMIT)):
        rank.moves("forward")
        rank.wait(1)
    assert rank.states == [(MOVES, 1)]
    rank.wait(1.2 * LIMIT)
    assert [stall.state for stall in rank.written] == [MOVES, MOVES, STANDS]


def test_the_first_steps_may_compile():
    rank = Rank().wait(FIRST_STEPS * LIMIT - 2)
    assert not rank.written
    assert Rank().wait(FIRST_STEPS * LIMIT + 2).written


def test_the_limit_holds_from_the_second_update_on():
    rank = Rank().wait(1)
    rank.trains(1)
    assert rank.standstill.limit == FIRST_STEPS * LIMIT
    rank.trains(1)
    assert rank.standstill.limit == LIMIT


def test_a_rank_whose_phases_have_no_times_stands_where_it_was_first_seen():
    rank = Rank().trains()
    rank.phase, rank.moved_at = "backward", None
    rank.wait(LIMIT + 2)
    assert [(stall.state, stall.in_phase) for stall in rank.written] == [(MOVES, LIMIT - 1), (STANDS, LIMIT)]


def test_slow_steps_have_more_time():
    rank = Rank().trains(6, seconds=10)
    assert rank.standstill.limit == 200
    rank.wait(150)
    assert not rank.written
    assert rank.wait(60).written


def test_what_could_not_be_written_is_written_later():
    rank = Rank().trains()
    rank.fails = True
    with pytest.raises(OSError):
        rank.wait(LIMIT + 1)
    rank.fails = False
    assert rank.wait(1).written


def test_nothing_is_looked_at_once_the_run_is_closed():
    rank = Rank().trains()
    rank.is_over = True
    assert not rank.standstill.look()


def test_the_stack_names_functions_and_neither_values_nor_paths():
    def waiting(password):
        return stack_of(sys._getframe())

    stack = waiting("hunter2")
    assert stack[0].startswith(f"{__name__}:test_the_stack_names_functions")
    assert "waiting" in stack[0]
    assert not [frame for frame in stack if "hunter2" in frame or "/" in frame]


def test_the_limit_is_set_by_the_environment(monkeypatch):
    for given, limit in (("5", 5.0), ("", 60.0), ("soon", 60.0), ("0", 0.0), ("-1", 0.0)):
        monkeypatch.setenv("SMDEBUG_STALL_SECONDS", given)
        assert stall_seconds() == limit


def test_the_thread_ends_when_it_is_stopped_and_outlives_errors():
    looked = threading.Event()

    class Failing:
        times = 0

        def look(self):
            self.times += 1
            if self.times > 2:
                looked.set()
            raise OSError

        def end(self):
            pass

    thread = StandstillThread(Failing(), 0.01)
    assert looked.wait(60)
    thread.stop()
    thread.stop()
    assert not thread._thread.is_alive()
