"""The library offers everything in the table of the old library's interface."""

from __future__ import annotations

import pytest

from tests.compatibility.table import Row, check, read_table

ROWS = read_table()
HERE = [row for row in ROWS if row.framework is None]


def test_the_table_covers_the_whole_interface() -> None:
    assert len(ROWS) >= 500
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize("row", HERE, ids=str)
def test_the_library_is_as_the_table_says(row: Row, request: pytest.FixtureRequest) -> None:
    check(row, request.getfixturevalue("given") if row.needs_a_run else {})
