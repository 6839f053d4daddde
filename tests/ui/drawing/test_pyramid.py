"""No outlier is lost at any resolution: compared with plain loops over all values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.numbers.rows import COLUMNS
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.drawing.pyramid import Pyramid

NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]))


def extremes(values):
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (None, None)


def none_if_nan(value):
    return None if math.isnan(value) else value


@given(
    st.lists(st.lists(NUMBERS, max_size=70), max_size=12),
    st.integers(1, 60),
    st.integers(0, 400),
    st.integers(0, 400),
)
def test_each_part_has_the_extremes_of_exactly_its_values(pieces, most, start, width):
    pyramid, values = Pyramid(), []
    for piece in pieces:
        steps = np.arange(len(values), len(values) + len(piece)) * 3
        pyramid.append(steps, np.array(piece, float))
        values += piece
    parts = pyramid.between(3 * start, 3 * (start + width), most)

    covered_steps = set()
    for first, last, low, high, not_finite in zip(
        parts.first, parts.last, parts.low, parts.high, parts.not_finite, strict=True
    ):
        values_of_part = values[first // 3 : last // 3 + 1]
        assert (none_if_nan(low), none_if_nan(high)) == extremes(values_of_part)
        assert not_finite == sum(not math.isfinite(value) for value in values_of_part)
        covered_steps |= {*range(first, last + 1, 3)}
    asked_steps = {3 * at for at in range(len(values)) if start <= at <= start + width}
    assert asked_steps <= covered_steps
    fits_unjoined = len(asked_steps) + 2 <= most
    assert len(parts.first) <= most + (3 if fits_unjoined else 1)


def test_a_spike_of_one_step_in_100_000_survives_at_every_zoom():
    values = np.sin(np.arange(100_000) / 50)
    values[61_803] = 40.0
    pyramid = Pyramid()
    for part in np.array_split(np.arange(100_000), 1100):
        pyramid.append(part, values[part])
    width = 100_000
    while width > 10:
        first = max(0, 61_803 - width // 3)
        found = pyramid.between(first, first + width, 800)
        assert np.nanmax(found.high) == 40.0, width
        assert len(found.high) <= 801
        width //= 2


@pytest.mark.parametrize("count", [257, 300, 513, 4097])
@pytest.mark.parametrize("extreme", [9.0, -9.0, math.nan])
def test_an_extreme_at_either_end_survives_at_every_zoom(count, extreme):
    for at in (0, 15, 16, 255, 256, count - 17, count - 2, count - 1):
        values = np.sin(np.arange(count))
        values[at] = extreme
        at_once, in_pieces = Pyramid(), Pyramid()
        at_once.append(np.arange(count), values)
        for piece in np.array_split(np.arange(count), count // 37):
            in_pieces.append(piece, values[piece])
        for most in (1, 2, 7, 16, 17, 200):
            for pyramid in (at_once, in_pieces):
                parts = pyramid.between(None, None, most)
                place = (at, most)
                assert (parts.first[0], parts.last[-1]) == (0, count - 1), place
                found = (np.nanmax(parts.high), np.nanmin(parts.low), parts.not_finite.sum())
                assert found == (np.nanmax(values), np.nanmin(values), math.isnan(extreme)), place


EDGES = st.sampled_from([0, 1, 15, 16, 17, 100, 255, 256, 257, 300, 511, 512, 513, 600])


@given(st.lists(st.tuples(EDGES, EDGES), max_size=6), st.integers(1, 4))
def test_a_training_that_is_resumed_again_and_again_leaves_no_old_values(pieces, most):
    pyramid, values = Pyramid(), []
    for number, (resumed_at, end) in enumerate(pieces):
        resumed_at = min(resumed_at, len(values))
        if resumed_at < end:
            values[resumed_at:] = [float(number)] * (end - resumed_at)
            pyramid.append(np.arange(resumed_at, end), np.array(values[resumed_at:]))
    parts = pyramid.between(None, None, most)
    for first, last, low, high in zip(parts.first, parts.last, parts.low, parts.high, strict=True):
        assert (low, high) == extremes(values[first : last + 1])
    assert parts.last[-1:].tolist() == [len(values) - 1][: len(values)]


def test_a_training_that_is_resumed_to_a_full_cell_leaves_no_old_values():
    pyramid = Pyramid()
    pyramid.append(np.arange(300), np.full(300, 9.0))
    pyramid.append(np.arange(256), np.ones(256))
    pyramid.append(np.arange(256, 300), np.ones(44))
    assert pyramid.between(None, None, 1).high.tolist() == [1.0]


def test_a_resumed_training_replaces_the_steps_that_it_repeats():
    pyramid = Pyramid()
    pyramid.append(np.arange(100), np.ones(100))
    pyramid.append(np.arange(40, 60), np.full(20, 2.0))
    assert pyramid.steps.tolist() == list(range(60))
    assert np.nanmax(pyramid.between(0, 39, 2).high[:1]) == 1.0
    assert pyramid.between(None, None, 1000).high[40:].tolist() == [2.0] * 20


@given(st.integers(1, 300), st.integers(64, 70), st.integers(1, 80), st.integers(0, 299))
def test_a_heat_map_keeps_the_extremes_of_each_tensor(steps, room, most, spike):
    statistics = Statistics(most=room)
    values = np.random.default_rng(steps).normal(size=(steps, 3, len(COLUMNS))).astype(np.float32)
    values[min(spike, steps - 1), 1] = 1000.0
    for step in range(steps):
        statistics.append(10 * step, ["a", "b", "c"], values[step])
    window = statistics.window("rms", most=most)
    column = COLUMNS.index("rms")
    for at, (first, last) in enumerate(zip(window.first, window.last, strict=True)):
        part = values[first // 10 : last // 10 + 1, :, column]
        assert window.low[:, at].tolist() == part.min(axis=0).tolist()
        assert window.high[:, at].tolist() == part.max(axis=0).tolist()
    assert window.high[1].max() == 1000.0
    assert len(statistics) <= room
    assert window.first[0] == 0
    assert window.last[-1] == 10 * (steps - 1)


@given(st.integers(8, 60), st.integers(1, 400))
def test_a_heat_map_continues_when_its_memory_is_used_up(room, steps):
    names = ["a", "b", "c"]
    budget = room * len(names) * len(COLUMNS) * 4
    statistics = Statistics(budget)
    for step in range(steps):
        values = np.full((3, len(COLUMNS)), 1000.0 if step == steps // 2 else step, np.float32)
        statistics.append(step, names, values)
        assert statistics.nbytes <= max(room + 1, 16) * len(names) * len(COLUMNS) * 4
    window = statistics.window("rms")
    assert window.first[0] == 0
    assert window.last[-1] == steps - 1
    assert window.high.max() == 1000.0


def test_tensors_that_come_later_get_rows_and_the_budget_holds():
    statistics = Statistics(budget=1 << 20)
    for step in range(500):
        names = [f"t{n}" for n in range(10 + step)]
        statistics.append(step, names, np.full((len(names), len(COLUMNS)), step, np.float32))
    window = statistics.window("mean")
    assert window.high[0, -1] == 499
    assert np.isnan(window.high[508, 0])
    assert window.high[508, -1] == 499
    assert statistics.nbytes <= max(2 << 20, 2 * 64 * 509 * len(COLUMNS) * 4)
