"""Whatever is appended: each stretch has the smallest and the largest of its steps."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.numbers.rows import COLUMN, COLUMNS
from smdebug.ui.drawing.matrices import BUDGET, MOST_STRETCHES, Statistics

RMS, NON_FINITE = COLUMN["rms"], COLUMN["non_finite"]
ROW = len(COLUMNS) * 4


class Appended:
    """Statistics, and every row that they were given."""

    def __init__(self, **options):
        self.statistics = Statistics(**options)
        self.rows: dict[int, dict[str, np.ndarray]] = {}
        self._random = np.random.default_rng(0)

    def append(self, step, *names):
        values = self._random.normal(size=(len(names), len(COLUMNS))).astype(np.float32)
        values[:, NON_FINITE] = step % 7 == 3
        self.rows = {known: rows for known, rows in self.rows.items() if known < step}
        self.rows[step] = dict(zip(names, values, strict=True))
        self.statistics.append(step, list(names), values)

    def check(self):
        first, last, low, high = self.statistics.stretches
        high = low if high is None else high
        steps = sorted(self.rows)
        assert first[0] == steps[0]
        assert last[-1] == steps[-1]
        for at, (begin, end) in enumerate(zip(first, last, strict=True)):
            of_stretch = [self.rows[step] for step in steps if begin <= step <= end]
            for place, name in enumerate(self.statistics.names):
                known = [rows[name] for rows in of_stretch if name in rows]
                if known:
                    np.testing.assert_array_equal(low[at, place], np.min(known, axis=0))
                    np.testing.assert_array_equal(high[at, place], np.max(known, axis=0))
                else:
                    assert np.isnan(low[at, place]).all()
        counts = [sum(begin <= step <= end for step in steps) for begin, end in zip(first, last, strict=True)]
        assert sum(counts) == len(steps)
        return counts


@pytest.mark.parametrize("most", [8, 9, 16])
def test_stretches_are_joined_when_there_is_no_room_for_another(most):
    made = Appended(most=most)
    for step in range(4 * most + 3):
        made.append(10 * step, "a", "b")
        counts = made.check()
        assert len(counts) == len(made.statistics) <= most
        each = made.statistics.steps_in_a_stretch
        assert set(counts[:-1]) <= {each}
        assert counts[-1] <= each
    assert each in (4, 8)
    assert made.statistics.last_step == 10 * (4 * most + 2)


def test_as_many_stretches_are_kept_as_the_limit_says():
    made = Appended(most=12)
    for step in range(12):
        made.append(step, "a")
    assert (len(made.statistics), made.statistics.steps_in_a_stretch) == (12, 1)
    made.append(12, "a")
    assert (len(made.statistics), made.statistics.steps_in_a_stretch) == (7, 2)
    assert made.check() == [2] * 6 + [1]
    assert (BUDGET, MOST_STRETCHES) == (48 << 20, 4096)


@pytest.mark.parametrize(("tensors", "kept"), [(1, 20), (2, 10), (3, 8)])
def test_the_budget_is_of_bytes_and_eight_stretches_remain(tensors, kept):
    made = Appended(budget=20 * ROW)
    names = [f"t{number}" for number in range(tensors)]
    for step in range(kept):
        made.append(step, *names)
    assert len(made.statistics) == kept
    made.append(kept, *names)
    assert len(made.statistics) < kept
    made.check()


def test_tensors_that_appear_later_leave_no_values_before():
    made = Appended(most=8)
    for step in range(30):
        made.append(step, *(("a", "b") if step < 9 else ("c", "a") if step < 20 else ("b",)))
        made.check()
    assert made.statistics.names == ["a", "b", "c"]


@pytest.mark.parametrize("back", [29, 17, 16, 15, 3, 0])
def test_a_step_that_is_written_again_drops_those_from_there_on(back):
    made = Appended(most=64)
    for step in [*range(30), *range(back, 33)]:
        made.append(step, "a")
        made.check()
    assert len(made.statistics) == 33


def test_an_attempt_that_begins_again_within_a_stretch_drops_it():
    statistics = Statistics(most=8)
    values = np.zeros((1, len(COLUMNS)), np.float32)
    for step in range(9):
        statistics.append(step, ["a"], values)
    assert statistics.stretches[0].tolist() == [0, 2, 4, 6, 8]
    statistics.append(5, ["a"], values + 1)
    assert statistics.stretches[0].tolist() == [0, 2, 5]
    assert statistics.stretches[1].tolist() == [1, 3, 5]
    statistics.append(6, ["a"], values + 2)
    assert statistics.stretches[1].tolist() == [1, 3, 6]
    assert statistics.window("rms").high.tolist() == [[0, 0, 2]]
    assert statistics.window("rms").low.tolist() == [[0, 0, 1]]


@pytest.fixture
def twenty():
    made = Appended()
    for step in range(20):
        made.append(10 * step, "a", "b")
    return made


@pytest.mark.parametrize(
    ("first", "last", "steps"),
    [
        (None, None, (0, 190)),
        (50, 100, (40, 110)),
        (45, 105, (40, 110)),
        (0, 0, (0, 10)),
        (None, 35, (0, 40)),
        (180, None, (170, 190)),
        (500, None, (190, 190)),
    ],
)
def test_a_window_has_one_more_step_on_each_side(first, last, steps, twenty):
    window = twenty.statistics.window("rms", first, last)
    assert (window.first[0], window.last[-1]) == steps
    assert window.is_exact
    for at, step in enumerate(window.first):
        assert window.low[:, at].tolist() == [twenty.rows[step][name][RMS] for name in "ab"]


@pytest.mark.parametrize(
    ("most", "widths"), [(20, [1] * 20), (19, [2] * 10), (7, [3] * 6 + [2]), (1, [20]), (0, [20])]
)
def test_a_window_has_at_most_so_many_columns(most, widths, twenty):
    window = twenty.statistics.window("rms", most=most)
    assert ((window.last - window.first) // 10 + 1).tolist() == widths
    assert window.is_exact == (most == 20)
    values = np.array([[twenty.rows[10 * step][name][RMS] for step in range(20)] for name in "ab"])
    edges = np.cumsum([0, *widths[:-1]])
    np.testing.assert_array_equal(window.low, np.minimum.reduceat(values, edges, axis=1))
    np.testing.assert_array_equal(window.high, np.maximum.reduceat(values, edges, axis=1))


@pytest.mark.parametrize("most", [20, 7, 1])
def test_all_statistics_are_joined_as_a_window_is(most, twenty):
    first, last, low, high = twenty.statistics.joined(most)
    assert (high is None) == (most == 20)
    for statistic in ("min", "rms", "p99"):
        window = twenty.statistics.window(statistic, most=most)
        assert (first.tolist(), last.tolist()) == (window.first.tolist(), window.last.tolist())
        np.testing.assert_array_equal(low[:, :, COLUMN[statistic]].T, window.low)
        top = low if high is None else high
        np.testing.assert_array_equal(top[:, :, COLUMN[statistic]].T, window.high)


def test_stretches_of_several_steps_are_joined_with_their_largest():
    made = Appended(most=8)
    for step in range(16):
        made.append(step, "a")
    _, last, low, high = made.statistics.joined(2)
    assert last.tolist() == [7, 15]
    values = np.array([made.rows[step]["a"] for step in range(16)])
    np.testing.assert_array_equal(low[:, 0], [values[:8].min(0), values[8:].min(0)])
    np.testing.assert_array_equal(high[:, 0], [values[:8].max(0), values[8:].max(0)])
    _, _, low, high = made.statistics.joined(8)
    np.testing.assert_array_equal(low[0, 0], values[:2].min(0))
    np.testing.assert_array_equal(high[0, 0], values[:2].max(0))


@pytest.mark.parametrize("most", [8, 64])
def test_odd_values_are_marked_where_they_are(most):
    made = Appended(most=most)
    for step in range(24):
        made.append(step, "a")
    window = made.statistics.window("rms", mark_odd=True)
    stretches = zip(window.first, window.last, strict=True)
    is_odd = [any(step % 7 == 3 for step in range(begin, end + 1)) for begin, end in stretches]
    assert np.isinf(window.high[0]).tolist() == is_odd
    assert np.isfinite(made.statistics.window("rms").high).all()
    assert np.isfinite(made.statistics.window("non_finite", mark_odd=True).high).all()
    assert np.isinf(window.low[0]).tolist() == (is_odd if most == 64 else [False] * len(is_odd))


def test_a_statistic_that_there_is_not_is_named_with_those_that_there_are():
    with pytest.raises(SMDebugValueError, match=r"'median' is not a statistic\. Known are count, non_finite"):
        Statistics().window("median")


def test_the_history_of_a_tensor_has_all_statistics(twenty):
    first, last, low, high = twenty.statistics.history("b")
    assert first.tolist() == last.tolist() == list(range(0, 200, 10))
    np.testing.assert_array_equal(low, [rows["b"] for rows in twenty.rows.values()])
    np.testing.assert_array_equal(high, low)


def test_the_last_measurement_is_that_of_a_step_that_has_more_than_a_count():
    statistics = Statistics()
    rows = np.full((2, len(COLUMNS)), np.nan, np.float32)
    rows[:, 0] = 0
    assert statistics.last_step is None
    for step, known in enumerate([[True, False], [True, False], [False, False]]):
        values = rows.copy()
        values[known, RMS] = 1.0
        statistics.append(step, ["a", "b"], values)
    assert statistics.last_measured(0) == 1
    assert statistics.last_measured(1) is None
    assert statistics.last_step == 2


def test_two_runs_are_compared_at_the_stretches_of_both():
    ours, theirs = Appended(), Appended()
    for step in range(0, 20, 2):
        ours.append(step, "a")
    for step in range(0, 20, 3):
        theirs.append(step, "a")
    same, low, other = ours.statistics.together_with(theirs.statistics)
    assert same.tolist() == [0, 6, 12, 18]
    np.testing.assert_array_equal(low[:, 0], [ours.rows[step]["a"] for step in same])
    np.testing.assert_array_equal(other[:, 0], [theirs.rows[step]["a"] for step in same])


def test_what_is_extended_is_as_if_it_were_appended_step_by_step():
    for split in (8, 16, 24):
        whole = Appended(most=8)
        later = Statistics(most=8)
        begin = Statistics(most=8)
        for step in range(40):
            whole.append(step, "a", "b")
            rows = np.array(list(whole.rows[step].values()))
            (begin if step < split else later).append(step, ["a", "b"], rows)
        begin.extend(later)
        for found, wanted in zip(begin.stretches, whole.statistics.stretches, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_kept_stretches_continue_and_those_that_do_not_fit_are_refused(twenty):
    first, last, low, high = twenty.statistics.stretches
    made = Statistics.of_stretches(["a", "b"], (first, last, low), high, per_stretch=1)
    made.append(200, ["a", "b"], low[0])
    assert len(made) == 21
    assert made.nbytes == made.stretches[2].base.nbytes
    for names, top in ((["a"], high), (["a", "b"], low[:3])):
        with pytest.raises(ValueError, match="do not belong together"):
            Statistics.of_stretches(names, (first, last, low), top, per_stretch=1)
