"""How long a run took, by a clock that may be wrong."""

import pytest

from smdebug.ui.finding.times import AHEAD, clock_note, duration_of


@pytest.mark.parametrize(
    ("first", "last", "duration"),
    [
        (None, 5.0, None),
        (5.0, None, None),
        (5.0, 5.0, 0.0),
        (5.0, 8.5, 3.5),
        (5.0, 4.9, None),
        (0.0, 1.0, 1.0),
    ],
)
def test_a_run_took_the_time_between_its_steps(first, last, duration):
    assert duration_of(first, last) == duration


@pytest.mark.parametrize(
    ("first", "last", "note"),
    [
        (None, 5.0, ""),
        (5.0, None, ""),
        (100.0, 100.0, ""),
        (100.0, 1000.0 + AHEAD, ""),
        (100.0, 1001.0 + AHEAD, "saved 2 minutes in the future"),
        (100.0, 1000.0 + 2 * 86_400, "saved 2 days in the future"),
        (100.0, 99.9, "saved 1 second before its first one"),
        (100.0, 98.0, "saved 2 seconds before its first one"),
        (1000.0, 881.0, "saved 119 seconds before"),
        (1000.0, 880.0, "saved 2 minutes before"),
        (9000.0, 1801.0, "saved 120 minutes before"),
        (9000.0, 1800.0, "saved 2 hours before"),
        (9e9, 0.0, "saved 104,167 days before"),
    ],
)
def test_a_clock_that_is_wrong_is_mentioned(first, last, note):
    found = clock_note(first, last, 1000.0)
    assert bool(found) == bool(note)
    assert note in found
    assert AHEAD == 120
