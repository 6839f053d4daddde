"""Where the time of a rank's steps goes, on a clock that the test sets."""

from types import SimpleNamespace

import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.observing.phases import FREQUENT_RANKS, Phases
from smdebug.saving.planning.save_plan import NO_MEMBERS

DATA, FORWARD, BACKWARD, UPDATE = 0.1, 0.2, 0.4, 0.05


class Trained:
    """A rank whose steps take always as long."""

    def __init__(self, ranks=2, first_step=0):
        self.now = 0.0
        self.recorder = SimpleNamespace(
            last_begun=None, passed=0, step=0, due=NO_MEMBERS, first_step=first_step
        )
        self.phases = Phases(self.recorder, ranks, fail=raised, clock=lambda: self.now)

    def step(self, number, *, data=DATA, mode=ModeKeys.TRAIN, due=NO_MEMBERS):
        self.recorder.last_begun = SimpleNamespace(mode=mode, mode_step=number)
        self.recorder.step, self.recorder.due = number + 100, due
        for seconds, part in (
            (data, self.phases.forward_begins),
            (FORWARD, self.phases.backward_begins),
            (BACKWARD, self.phases.after_backward),
            (UPDATE, self.phases.update_ends),
        ):
            self.now += seconds
            part()


def raised(error):
    raise error


def test_each_part_of_a_step_has_its_time_and_a_slow_step_changes_no_median():
    rank = Trained()
    for step in range(21):
        rank.step(step, data=30.0 if step == 14 else DATA)
    first, second = rank.phases.taken(20)
    # The time before the first update is not known.
    assert first[:3] == [0, 100, 9]
    assert second == pytest.approx([10, 100, 10, 0.75, 0.35, 0.15, DATA, FORWARD, BACKWARD, UPDATE])
    assert rank.phases.taken(20) == []


def test_steps_that_this_rank_saves_or_evaluates_are_left_out():
    rank = Trained()
    for step in range(20):
        rank.step(
            step,
            mode=ModeKeys.EVAL if step == 12 else ModeKeys.TRAIN,
            due=1 if step in (10, 15) else NO_MEMBERS,
        )
    assert rank.phases.taken(20)[1][2] == 7


def test_an_update_without_a_backward_pass_is_no_step():
    rank = Trained()
    for step in range(10):
        rank.step(step)
        rank.phases.update_ends()
    assert [row[2] for row in rank.phases.taken(10)] == [9]


@pytest.mark.parametrize("begins", [0, 1_230], ids=["from the first step", "from a checkpoint"])
@pytest.mark.parametrize(("ranks", "noted"), [(FREQUENT_RANKS, [20, 30, 110]), (FREQUENT_RANKS + 1, [110])])
def test_many_ranks_note_their_times_only_with_their_digests(ranks, noted, begins):
    rank, found, windows = Trained(ranks, begins), [], []
    for at in range(111):
        if at in (20, 30, 110):
            taken = rank.phases.taken(begins + at)
            found += [at] if taken else []
            windows += [row[0] - begins for row in taken]
        rank.step(begins + at)
    assert (found, windows) == (noted, [*range(0, 110, 10)])
