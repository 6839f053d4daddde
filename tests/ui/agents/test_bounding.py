"""Answers fit, and say what was left out."""

from __future__ import annotations

import json

from smdebug.ui.agents.bounding import fitted, text_of, tokens


def test_an_answer_that_fits_is_whole():
    assert fitted({"a": [1, 2]}, ["a"], most=100) == {"a": [1, 2], "cut": []}


def test_lists_are_cut_in_order_and_named():
    answer = {"minor": list(range(1000)), "major": ["x" * 30] * 30}
    found = fitted(answer, ["minor", "major"], most=400)
    assert tokens(text_of(found)) <= 400
    assert len(found["major"]) == 30 or len(found["minor"]) == 1
    assert found["cut"][0].startswith("minor: ")
    assert found["cut"][0].endswith(" of 1000")


def test_an_important_list_keeps_an_item_while_another_can_be_cut():
    found = fitted({"minor": ["y" * 600] * 3, "major": ["x" * 60]}, ["major", "minor"], most=100)
    assert (len(found["major"]), found["minor"]) == (0, [])
    found = fitted({"minor": ["y" * 600] * 3, "major": ["x" * 60]}, ["minor", "major"], most=100)
    assert (len(found["major"]), found["minor"]) == (1, [])


def test_the_count_is_an_upper_bound_for_digits_words_and_other_scripts():
    assert tokens("1234") == 4
    assert tokens("gradient") == 3
    assert tokens("層") == 3
    assert tokens('{"a":1}') == 7


def test_what_is_not_finite_never_gets_into_the_text():
    assert json.loads(text_of({"a": "nan"})) == {"a": "nan"}
