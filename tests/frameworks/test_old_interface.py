"""The hooks of the installed frameworks offer everything in the table of the old library's interface."""

from importlib.util import find_spec

import pytest

from tests.compatibility.table import check, read_table

ROWS = [row for row in read_table() if row.framework and find_spec(row.framework)]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_the_hook_is_as_the_table_says(row):
    check(row, {})
