"""Values of a log, in the order of their steps."""

from __future__ import annotations

import math
import random

from smdebug.importing.records import Details, Point
from smdebug.importing.sorting import GOES_BACK, REPEATED, SortedPoints


def test_values_come_by_step_whatever_their_order():
    given = [Point("b", 3, 1.0), Point("a", 1, 2.0), Point("a", 3, 3.0), Point("b", 0, 4.0)]
    with SortedPoints() as points:
        points.add(given, Details())
        assert [(value.step, value.series, value.value) for value in points.in_order()] == [
            (0, "b", 4.0),
            (1, "a", 2.0),
            (3, "b", 1.0),
            (3, "a", 3.0),
        ]


def test_of_several_values_at_a_step_the_last_one_counts_and_that_is_said():
    details = Details()
    with SortedPoints() as points:
        points.add([Point("a", 1, 1.0), Point("a", 1, 2.0), Point("a", 2, 3.0), Point("a", 1, 4.0)], details)
        assert [value.value for value in points.in_order()] == [4.0, 3.0]
        assert points.counts() == {"a": 2}
    assert details.left_out == {REPEATED: 1, GOES_BACK: 1}


def test_numbers_that_are_not_finite_are_kept():
    with SortedPoints() as points:
        points.add(
            [Point("a", step, value) for step, value in enumerate((math.inf, -math.inf, math.nan))], Details()
        )
        infinite, negative, nan = (value.value for value in points.in_order())
    assert (infinite, negative) == (math.inf, -math.inf)
    assert math.isnan(nan)


def test_more_values_than_one_batch_come_back_in_order():
    steps = list(range(25_000))
    random.Random(0).shuffle(steps)
    with SortedPoints() as points:
        points.add((Point("a", step, float(step)) for step in steps), Details())
        assert [value.value for value in points.in_order()] == [float(step) for step in range(25_000)]
        assert points.span("a") == (0, 24_999)
