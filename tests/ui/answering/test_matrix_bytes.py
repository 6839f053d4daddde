"""The matrix of a heat map, as the page reads it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.ui.answering.answers import matrix_bytes


def read(data):
    """Read it as the page does: numbers begin at a multiple of four bytes."""
    length = int.from_bytes(data[:4], "little")
    assert length % 4 == 0
    header = json.loads(data[4 : 4 + length])
    numbers = np.frombuffer(data[4 + length :], "<f4").reshape(-1, header["rows"], header["columns"])
    return header, numbers


@pytest.mark.parametrize("last_step", [1, 10, 100, 1000])
@pytest.mark.parametrize("is_exact", [True, False])
def test_a_window_is_a_header_and_one_matrix_or_two(last_step, is_exact):
    low = np.arange(6, dtype=np.float32).reshape(3, 2)
    window = SimpleNamespace(
        first=np.array([0, last_step]),
        last=np.array([0, last_step]),
        is_exact=is_exact,
        low=low,
        high=low + 10,
    )
    header, numbers = read(matrix_bytes(window, [2, 0, 7]))
    assert header == {
        "rows": 3,
        "columns": 2,
        "exact": is_exact,
        "first": [0, last_step],
        "last": [0, last_step],
    }
    assert len(numbers) == (1 if is_exact else 2)
    assert numbers[0].tolist()[:2] == [[4, 5], [0, 1]]
    assert np.isnan(numbers[0][2]).all(), "a row that came later has no values yet"
    if not is_exact:
        assert numbers[1].tolist()[:2] == [[14, 15], [10, 11]]
