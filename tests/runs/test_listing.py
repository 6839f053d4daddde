"""The order of runs in a list."""

from __future__ import annotations

from itertools import pairwise

from smdebug.runs.listing import natural


def test_names_are_in_the_order_in_which_people_count():
    ordered = ["", "a", "a1", "a1b", "a2", "a10", "a10/x", "my-run", "my-run-2", "my-run-10", "z"]
    keys = [natural(name) for name in ordered]
    assert all(before < after for before, after in pairwise(keys))


def test_numbers_of_any_length_are_compared():
    assert natural("a" + "9" * 40) != natural("a" + "9" * 41)
