"""Histories in memory, continued by others, and remembered."""

from __future__ import annotations

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.trials.past.history import ChainedHistory, MemoryHistory, StepSummary, is_of
from smdebug.trials.past.remembered_history import RememberedHistory

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
WORKERS = ("worker_0", "worker_1")


def summary(step, mode=TRAIN, layout="d"):
    return StepSummary(step, mode, step // 2, WORKERS, layout)


STEPS = [summary(step, EVAL if step % 20 == 10 else TRAIN) for step in range(0, 100, 10)]
LAYOUTS = [StepLayout("d", ("w",), "TRAIN", 0, WORKERS), StepLayout("e", ("v",), "EVAL", 50, WORKERS)]


class Asked:
    """A history that counts what it is asked."""

    def __init__(self, steps=STEPS):
        self._history = MemoryHistory(steps, LAYOUTS)
        self.at_count = self.taken = self.walks = 0

    def at(self, step):
        self.at_count += 1
        return self._history.at(step)

    def before(self, step, mode=None):
        self.walks += 1
        for found in self._history.before(step, mode):
            self.taken += 1
            yield found

    def first(self, mode=None):
        return self._history.first(mode)

    def layouts(self):
        return self._history.layouts()


def numbers(found):
    return [each.step for each in found]


def test_a_step_has_a_mode_once_it_was_read():
    assert is_of(summary(3), None)
    assert is_of(summary(3), TRAIN)
    assert not is_of(summary(3), EVAL)
    assert is_of(StepSummary.unread(3, WORKERS), EVAL)
    assert StepSummary.unread(3, ["a"]) == StepSummary(3, ModeKeys.GLOBAL, 3, ("a",), "")


def test_a_history_in_memory_has_the_steps_before_a_step():
    history = MemoryHistory(reversed(STEPS), LAYOUTS)
    assert history.at(30) == STEPS[3]
    assert history.at(31) is None
    assert history.at(100) is None
    assert numbers(history.before(30)) == [20, 10, 0]
    assert numbers(history.before(31)) == [30, 20, 10, 0]
    assert numbers(history.before(50, EVAL)) == [30, 10]
    assert numbers(history.before(0)) == []
    assert (history.first().step, history.first(EVAL).step) == (0, 10)
    assert MemoryHistory().first() is None


@pytest.mark.parametrize(
    ("through", "count", "steps", "complete_from"),
    [
        (90, 3, [70, 80, 90], 70),
        (45, 2, [30, 40], 30),
        (90, 10, None, 0),
        (90, 11, None, 0),
        (-1, 3, [], 0),
        (50, 0, [], 51),
    ],
)
def test_the_last_steps_of_a_history_say_from_where_on_they_are_all(through, count, steps, complete_from):
    recent = MemoryHistory.recent(MemoryHistory(STEPS, LAYOUTS), through, count)
    assert numbers(reversed(list(recent.before(1000)))) == (numbers(STEPS) if steps is None else steps)
    assert recent.complete_from == complete_from
    assert set(recent.layouts()) == ({"d", "e"} if through >= 50 else {"d"} if through >= 0 else set())


def test_a_history_survives_json():
    history = MemoryHistory(STEPS, LAYOUTS, complete_from=10)
    again = MemoryHistory.from_dict(history.to_dict())
    assert list(again.before(1000)) == list(history.before(1000))
    assert again.layouts() == history.layouts()
    assert again.complete_from == 10
    assert history.to_dict()["workers"] == [list(WORKERS)]


@pytest.mark.parametrize(
    "change",
    [
        {"complete_from": True},
        {"complete_from": None},
        {"workers": [[1]]},
        {"steps": [[0, "TRAIN", 0, 5, "d"]]},
        {"steps": [[0.0, "TRAIN", 0, 0, "d"]]},
        {"steps": [[0, "TRAIN", "0", 0, "d"]]},
        {"steps": [[0, "NONE", 0, 0, "d"]]},
        {"steps": [[0, "TRAIN", 0, 0, 1]]},
        {"steps": [[0]]},
        {"layouts": [{}]},
    ],
)
def test_what_is_no_history_is_refused(change):
    with pytest.raises(SMDebugValueError, match="not a history as returned by MemoryHistory"):
        MemoryHistory.from_dict({**MemoryHistory(STEPS, LAYOUTS).to_dict(), **change})


def test_a_recent_history_is_continued_by_the_older_one():
    older = Asked()
    recent = MemoryHistory(
        [summary(step, layout="e") for step in (40, 60, 80)], LAYOUTS[1:], complete_from=60
    )
    chained = ChainedHistory(recent, older)
    assert numbers(chained.before(90)) == [80, 60, 50, 40, 30, 20, 10, 0]
    assert numbers(chained.before(30)) == [20, 10, 0]
    assert numbers(chained.before(61)) == [60, 50, 40, 30, 20, 10, 0]
    assert numbers(chained.before(90, EVAL)) == [50, 30, 10]
    assert chained.at(70) is None, "no step is missing from 60 on"
    assert chained.at(60).layout == "e"
    assert chained.at(50).layout == chained.at(40).layout == "d"
    assert chained.first().step == 0
    assert set(chained.layouts()) == {"d", "e"}


def test_a_recent_history_that_is_complete_needs_no_other():
    older = Asked([])
    chained = ChainedHistory(MemoryHistory(STEPS), older)
    assert numbers(chained.before(30)) == [20, 10, 0]
    assert chained.first().step == 0
    assert (older.walks, chained.at(20).step) == (0, 20)


def test_what_was_asked_once_is_not_asked_again():
    asked = Asked()
    history = RememberedHistory(asked)
    for _ in range(2):
        assert numbers(history.before(90)) == [80, 70, 60, 50, 40, 30, 20, 10, 0]
        assert history.at(40).step == 40
        assert history.at(45) is None
        assert history.at(90).step == 90
        assert numbers(history.before(50)) == [40, 30, 20, 10, 0]
    assert (asked.walks, asked.taken, asked.at_count) == (1, 9, 2)


def test_each_mode_is_walked_by_itself():
    asked = Asked()
    history = RememberedHistory(asked)
    for _ in range(2):
        assert numbers(history.before(90, EVAL)) == [70, 50, 30, 10]
        assert numbers(history.before(90, TRAIN)) == [80, 60, 40, 20, 0]
    assert asked.walks == 2


def test_a_walk_that_is_interrupted_goes_on_where_it_was():
    asked = Asked()
    history = RememberedHistory(asked)
    walk = history.before(90)
    assert numbers([next(walk), next(walk)]) == [80, 70]
    assert asked.taken == 2
    assert numbers(history.before(90)) == [80, 70, 60, 50, 40, 30, 20, 10, 0]
    assert asked.walks == 1


def test_misses_are_forgotten_alone():
    asked = Asked()
    history = RememberedHistory(asked)
    assert (history.at(45), history.at(40).step) == (None, 40)
    history.forget_misses()
    assert (history.at(45), history.at(40).step, asked.at_count) == (None, 40, 3)
    history.forget()
    history.at(40)
    assert asked.at_count == 4
    assert numbers(history.before(20)) == [10, 0]
    history.forget()
    assert numbers(history.before(20)) == [10, 0]
    assert asked.walks == 2


def test_a_step_that_is_added_is_there_before_the_history_has_it():
    asked = Asked()
    history = RememberedHistory(asked)
    history.add(summary(100))
    history.add(summary(95, EVAL))
    assert history.at(100).step == 100
    assert asked.at_count == 0
    assert numbers(history.before(101))[:3] == [100, 95, 90]
    assert numbers(history.before(100, EVAL))[:2] == [95, 90]
    assert numbers(history.before(100, TRAIN))[:2] == [80, 60]


def test_a_step_that_contradicts_what_was_found_makes_it_asked_again():
    asked = Asked()
    history = RememberedHistory(asked)
    assert numbers(history.before(60))[:2] == [50, 40]
    history.add(summary(55))
    assert numbers(history.before(60))[:3] == [55, 50, 40]
    assert history.at(57) is None
    history.add(summary(57))
    assert history.at(57).step == 57
    assert numbers(history.before(60))[:2] == [57, 55]


def test_an_added_step_takes_the_place_of_that_of_the_history():
    history = RememberedHistory(Asked())
    history.add(summary(50, layout="new"))
    assert history.at(50).layout == "new"
    assert next(history.before(51)).layout == "new"
    assert next(history.before(60)).layout == "new"
    history.add(summary(50, layout="newer"))
    assert history.at(50).layout == "newer"


def test_so_many_results_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(RememberedHistory, "KEPT", 3)
    history = RememberedHistory(Asked())
    for step in (105, 103, 104, 110):
        history.add(summary(step))
    assert history.at(103) is None, "the first of them was dropped"
    assert numbers(history.before(120))[:4] == [110, 105, 104, 90]
    assert numbers(history.before(90)) == [80, 70, 60, 50, 40, 30, 20, 10, 0]
    assert len(history._previous) <= 3
    assert [history.at(step).step for step in (0, 10, 20, 30)] == [0, 10, 20, 30]
    assert len(history._at) <= 3


def test_steps_share_the_names_of_their_workers():
    history = RememberedHistory(
        Asked([summary(step)._replace(workers=tuple(map(str, WORKERS))) for step in (0, 1, 2)])
    )
    history.add(summary(3)._replace(workers=tuple(map(str, WORKERS))))
    names = {id(history.at(step).workers) for step in range(4)}
    assert len(names) == 1
    assert history.layouts() == Asked().layouts()
