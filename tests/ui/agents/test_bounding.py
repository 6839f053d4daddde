"""Answers fit, and say what was left out."""

from __future__ import annotations

import json

from smdebug.ui.agents.bounding import fitted, text_of, tokens
from smdebug.ui.agents.marking import marked


def test_an_answer_that_fits_is_whole():
    assert fitted({"a": [1, 2]}, ["a"], most=100) == {"a": [1, 2], "cut": []}
    assert fitted({"a": [1, 2]}, ["a"], totals={"a": 90})["cut"] == ["a: 2 of 90"], "it was cut before"


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


def test_the_essential_item_is_shortened_before_it_is_left_out():
    problem = {"cause": "vanishing", "what": marked("層" * 200), "why": [marked("名" * 200)] * 5, "since": 40}
    answer = {"problems": [problem, problem], "passed": ["rule"] * 50}
    found = fitted(answer, ["passed", "problems"], most=600, essential="problems")
    assert tokens(text_of(found)) <= 600
    ((shorter,), cut) = found["problems"], found["cut"]
    assert (shorter["cause"], shorter["since"], len(shorter["why"])) == ("vanishing", 40, 1)
    assert shorter["what"].startswith("«層層")
    assert shorter["what"].endswith("…»")
    assert cut == ["passed: 0 of 50", "problems: 1 of 2", "problems: shortened"]


def test_an_answer_of_nothing_but_long_texts_is_bounded_too():
    found = fitted({"run": marked("層" * 200), "tensor": marked("名" * 200), "step": 3}, [], most=500)
    assert tokens(text_of(found)) <= 500
    assert found["step"] == 3
    assert found["run"].endswith("…»")


def test_the_count_is_an_upper_bound_for_digits_words_and_other_scripts():
    assert tokens("1234") == 4
    assert tokens("gradient") == 3
    assert tokens("層") == 3
    assert tokens('{"a":1}') == 7


def test_what_is_not_finite_never_gets_into_the_text():
    assert json.loads(text_of({"a": "nan"})) == {"a": "nan"}
