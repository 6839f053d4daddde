"""The history before a step: handed over, listed or remembered, always with the same content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.past.history import ChainedHistory, MemoryHistory, StepSummary
from smdebug.trials.past.listed_history import ListedHistory
from smdebug.trials.past.remembered_history import RememberedHistory
from tests.support.looking import each
from tests.trials.viewing import FarStorage
from tests.trials.writing import begin, write_step

GLOBAL, TRAIN, EVAL = ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL
MODES = [None, TRAIN, EVAL]

SUMMARIES = st.builds(
    lambda steps: [StepSummary(step, mode, step, ("worker_0",), mode.name) for step, mode in steps],
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([TRAIN, TRAIN, EVAL])),
        unique_by=lambda summary: summary[0],
    ),
)


def step_numbers(steps: Any) -> list[int]:
    return [summary.step for summary in steps]


def a_run(*steps: int, workers: int = 2) -> MemoryStorage:
    storage = begin(MemoryStorage(), workers)
    for step in steps:
        for worker in range(workers if step % 2 == 0 else 1):
            write_step(storage, step, {"loss": 1.0}, worker=worker)
    return storage


# In memory


@given(SUMMARIES, st.integers(0, 32), st.sampled_from(MODES))
def test_a_history_in_memory_goes_back_step_by_step(
    summaries: list[StepSummary], step: int, mode: ModeKeys | None
) -> None:
    history = MemoryHistory(summaries)
    wanted = [s for s in sorted(summaries) if mode in (None, s.mode)]
    assert list(history.before(step, mode)) == [s for s in wanted if s.step < step][::-1]
    assert history.first(mode) == (wanted[0] if wanted else None)
    assert history.at(step) == next((s for s in summaries if s.step == step), None)


@given(SUMMARIES, st.integers(0, 32), st.integers(0, 8))
def test_a_recent_history_survives_json_and_says_how_far_it_reaches(
    summaries: list[StepSummary], through: int, count: int
) -> None:
    layouts = [StepLayout("TRAIN", ("a",), "TRAIN", 3, ("w",)), StepLayout("late", ("b",), "EVAL", 31)]
    recent = MemoryHistory.recent(MemoryHistory(summaries, layouts), through, count)
    again = MemoryHistory.from_dict(json.loads(json.dumps(recent.to_dict())))
    up_to = [s for s in sorted(summaries) if s.step <= through]
    assert list(again.before(1000)) == up_to[::-1][:count]
    missing = set(step_numbers(up_to)) - set(step_numbers(again.before(1000)))
    assert all(step < again.complete_from for step in missing)
    assert all(summary.step >= again.complete_from for summary in again.before(1000))
    assert again.layouts() == {layout.digest: layout for layout in layouts if layout.first_step <= through}


def test_what_many_steps_share_is_told_once():
    workers = tuple(f"worker_{number}" for number in range(1000))
    steps = [StepSummary(step, TRAIN, step, workers, "d") for step in range(200)]
    assert len(json.dumps(MemoryHistory(steps).to_dict())) < 30_000


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"complete_from": 0, "workers": [], "steps": [[0, "TRAIN", 0, 0, "d"]], "layouts": []},
        {"complete_from": 0, "workers": [[1]], "steps": [], "layouts": []},
        {"complete_from": "0", "workers": [], "steps": [], "layouts": []},
        {"complete_from": 0, "workers": [["w"]], "steps": [[0, "x", 0, 0, "d"]], "layouts": []},
        {"complete_from": 0, "workers": [], "steps": [], "layouts": [{"digest": "d"}]},
    ],
)
def test_what_is_not_a_history_is_refused(broken: dict[str, Any]):
    with pytest.raises(SMDebugValueError, match="not a history"):
        MemoryHistory.from_dict(broken)


# Listed


RUNS_TO_LIST = (
    [0, 1, 2, 3],
    [5, 999, 1000, 1001, 2500],
    [0, 3_000_000, 3_000_002, 9_500_000],
    [7000, 7001, 1_000_000],
    [42_000_000],
    [],
)
"""The steps of runs: within one index folder of a thousand steps, at its edges, and with wide gaps."""
LISTINGS = [
    (steps, last)
    for steps in RUNS_TO_LIST
    for last in sorted({*steps, *(step + 1 for step in steps), 10, 50_000_000})
]
"""Each of these runs, listed through each of its steps, the step after it, and steps far from all."""


@pytest.mark.parametrize(("steps", "last"), LISTINGS)
def test_a_listing_has_the_steps_of_the_run_up_to_its_last_one(steps: list[int], last: int):
    history = ListedHistory(a_run(*steps), through_step=last)
    listed = [step for step in steps if step <= last]
    assert step_numbers(history.before(last + 1)) == newest_first(listed)
    assert step_numbers(history.before(10**9)) == newest_first(listed)


@pytest.mark.parametrize(("steps", "last"), LISTINGS)
def test_a_listing_has_the_steps_before_its_last_one(steps: list[int], last: int):
    history = ListedHistory(a_run(*steps), through_step=last)
    earlier = [step for step in steps if step < last]
    assert step_numbers(history.before(last)) == newest_first(earlier)


@pytest.mark.parametrize(("steps", "last"), LISTINGS)
def test_a_listing_has_the_first_step_of_the_run(steps: list[int], last: int):
    history = ListedHistory(a_run(*steps), through_step=last)
    first_step = next((step for step in steps if step <= last), None)
    assert history.first() == (None if first_step is None else summary_at(first_step))
    assert history.first(TRAIN) is None, "a listing does not know modes"


@pytest.mark.parametrize("is_listed", [False, True], ids=["at first", "once it was listed"])
@pytest.mark.parametrize(("steps", "last"), LISTINGS)
def test_a_listing_has_a_single_step(steps: list[int], last: int, is_listed: bool):
    history = ListedHistory(a_run(*steps), through_step=last)
    if is_listed:
        list(history.before(10**9))
    for step in steps:
        assert history.at(step) == (summary_at(step) if step <= last else None)
    for step in each({-1, 0, 1, last} - set(steps)):
        assert history.at(step) is None


def newest_first(steps: list[int]) -> list[int]:
    return steps[::-1]


def summary_at(step: int) -> StepSummary:
    """What a listing shows of a step of `a_run`."""
    return StepSummary.unread(step, ("worker_0", "worker_1")[: 2 - step % 2])


def test_going_back_lists_one_folder_at_a_time():
    far = FarStorage(a_run(*range(0, 20_000, 100)), may_list=True)
    history = ListedHistory(far, through_step=20_000)
    assert step_numbers(islice(history.before(15_050), 5)) == [
        15_000,
        14_900,
        14_800,
        14_700,
        14_600,
    ]
    assert len(far.asked) == 2
    list(islice(history.before(14_000), 10))
    assert len(far.asked) <= 4
    list(islice(history.before(14_000), 10))
    history.at(13_900)
    assert len(far.asked) <= 4


def test_a_gap_of_a_million_steps_is_crossed_in_few_listings():
    far = FarStorage(a_run(5, 2_000_000), may_list=True)
    assert step_numbers(ListedHistory(far, 3_000_000).before(3_000_000)) == [2_000_000, 5]
    assert len(far.asked) < 80


# Chained


@given(SUMMARIES, st.integers(0, 31), st.integers(0, 6), st.sampled_from(MODES))
def test_what_was_handed_over_and_what_lies_behind_make_one_history(
    summaries: list[StepSummary], step: int, count: int, mode: ModeKeys | None
) -> None:
    whole = MemoryHistory(summaries, [StepLayout("TRAIN", ("a",), "TRAIN", 0)])
    older = Asked(whole)
    chained = ChainedHistory(MemoryHistory.recent(whole, 40, count), older)
    assert list(chained.before(step, mode)) == list(whole.before(step, mode))
    assert chained.at(step) == whole.at(step)
    assert chained.first(mode) == whole.first(mode)
    assert chained.layouts() == whole.layouts()


def test_what_was_handed_over_is_not_asked_for_again():
    steps = [StepSummary(step, TRAIN, step, ("w",), "d") for step in range(10)]
    older = Asked(MemoryHistory(steps))
    chained = ChainedHistory(MemoryHistory(steps[4:], complete_from=4), older)
    assert step_numbers(islice(chained.before(10), 6)) == [9, 8, 7, 6, 5, 4]
    assert chained.at(4) == steps[4]
    assert chained.at(11) is None
    assert older.asked == []
    assert step_numbers(chained.before(6)) == [5, 4, 3, 2, 1, 0]
    assert older.asked == [("before", 4, None)]


# Remembered


class Asked:
    """A history that counts its queries, and records which steps it returned."""

    def __init__(self, history: MemoryHistory):
        self.history = history
        self.asked: list[tuple[Any, ...]] = []
        self.pulled = 0

    def at(self, step: int) -> StepSummary | None:
        self.asked.append(("at", step))
        return self.history.at(step)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        self.asked.append(("before", step, mode))
        for summary in self.history.before(step, mode):
            self.pulled += 1
            yield summary

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return self.history.first(mode)

    def layouts(self) -> Any:
        return self.history.layouts()


QUESTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("at"), st.integers(0, 31)),
        st.tuples(st.just("add"), st.integers(0, 31)),
        st.tuples(st.just("forget")),
        st.tuples(st.just("before"), st.integers(0, 32), st.sampled_from(MODES), st.integers(1, 8)),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(SUMMARIES, QUESTIONS)
def test_a_remembered_history_tells_the_same_with_what_was_added(
    summaries: list[StepSummary], questions: list[tuple[Any, ...]]
) -> None:
    remembered = RememberedHistory(MemoryHistory(summaries))
    remembered.KEPT = 12  # so that forgetting happens, too
    expected = {summary.step: summary for summary in summaries}
    added: set[int] = set()
    for question, *about in questions:
        match question, *about:
            case "add", step:
                added.add(step)
                if len(added) <= remembered.KEPT:
                    expected[step] = added_at(step, expected.get(step))
                    remembered.add(expected[step])
            case "at", step:
                assert remembered.at(step) == expected.get(step)
            case "before", step, mode, count:
                newest_first = [expected[s] for s in sorted(expected, reverse=True) if s < step]
                of_mode = [s for s in newest_first if mode in (None, s.mode)]
                assert list(islice(remembered.before(step, mode), count)) == of_mode[:count]
            case "forget", *_:
                remembered.forget()


def added_at(step: int, saved: StepSummary | None) -> StepSummary:
    """A summary that a reader adds: of the mode that the step was saved in, if it was."""
    mode = saved.mode if saved else EVAL if step % 5 == 0 else TRAIN
    return StepSummary(step, mode, step, ("worker_0",), "new")


def test_walking_back_again_asks_nothing_and_walking_on_continues():
    asked = Asked(MemoryHistory([StepSummary(s, TRAIN, s, ("w",), "d") for s in range(0, 100, 2)]))
    remembered = RememberedHistory(asked)
    for _ in range(5):
        assert step_numbers(islice(remembered.before(50), 3)) == [48, 46, 44]
    assert step_numbers(islice(remembered.before(46), 3)) == [44, 42, 40]
    assert asked.asked == [("before", 50, None)]
    assert asked.pulled == 5


def test_a_step_that_was_added_next_to_the_one_asked_about_needs_no_question():
    asked = Asked(MemoryHistory())
    remembered = RememberedHistory(asked)
    for step in range(5):
        remembered.add(StepSummary(step, TRAIN, step, ("w",), "d"))
    assert step_numbers(islice(remembered.before(5), 5)) == [4, 3, 2, 1, 0]
    assert asked.asked == []


def test_a_step_that_turns_up_late_is_where_it_belongs():
    remembered = RememberedHistory(MemoryHistory([StepSummary(0, TRAIN, 0, ("w",), "d")]))
    assert step_numbers(remembered.before(50)) == [0]
    remembered.add(StepSummary(49, TRAIN, 1, ("w",), "d"))
    assert step_numbers(remembered.before(50)) == [49, 0]
