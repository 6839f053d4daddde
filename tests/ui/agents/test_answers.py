"""Answers to agents, from what commands have found."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.diagnosis import Issue
from smdebug.ui.agents import answers
from smdebug.ui.agents.bounding import fitted, text_of, tokens
from smdebug.ui.agents.marking import NOTE, found_in, marked, shown_text

RUN = SimpleNamespace(name="a", trial=None)


def diagnosis(*, issues=(), found=(), failed=(), unread="", passed=()):
    results = [SimpleNamespace(has_found=has) for has in found]
    return SimpleNamespace(issues=issues, results=results, failed=failed, unread=unread, passed=passed)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({}, "not checked"),
        ({"passed": ["A"]}, "nothing wrong"),
        ({"passed": ["A"], "found": [False]}, "nothing wrong"),
        ({"passed": ["A"], "failed": {"B": "why"}}, "incomplete"),
        ({"passed": ["A"], "unread": "2 steps are missing"}, "incomplete"),
        ({"passed": ["A"], "unread": "2 steps", "found": [False, True]}, "failing"),
        ({"issues": [1], "failed": {"B": "why"}}, "failing"),
    ],
)
def test_a_verdict_is_the_worst_of_what_is_known(found, verdict):
    assert answers.verdict_of(diagnosis(**found)) == verdict


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (1.23456, 1.235),
        (123456.0, 123500.0),
        (np.float32(0.5), 0.5),
        (0.0, 0.0),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_a_number_has_four_digits(value, shown):
    assert answers._number(value) == shown


def row(step, summary=None, mode=None):
    return SimpleNamespace(step=step, summary=summary, mode=mode)


def summary(value):
    return SimpleNamespace(mean=value, of=lambda statistic: {"rms": value, "non_finite": 0}.get(statistic))


def test_a_tensor_has_a_row_of_statistics_for_each_step():
    found = answers.tensor_answer(RUN, "w", [row(0, summary(1.5)), row(10)])
    assert found["columns"] == ["step", "rms", "mean", "min", "max", "non_finite"]
    assert found["rows"] == [[0, 1.5, None, None, None, 0], [10, None, None, None, None, None]]
    assert (found["note"], found["run"], found["tensor"], found["cut"]) == (NOTE, "«a»", "«w»", [])
    assert answers.tensor_answer(RUN, "w", [])["columns"][1] == "rms"


def test_a_scalar_has_its_values_evenly_spread():
    rows = [row(step, summary(float(step)), "TRAIN") for step in range(100)]
    found = answers.tensor_answer(RUN, "loss", rows)
    assert found["columns"] == ["step", "value"]
    assert len(found["rows"]) == 24
    assert (found["rows"][0], found["rows"][-1]) == ([0, 0.0], [99, 99.0])
    assert found["cut"] == ["rows: 24 of 100, evenly spread"]
    assert answers.tensor_answer(RUN, "loss", rows[:24])["cut"] == []


def test_a_run_of_several_places_has_the_first_of_them_and_their_number():
    issue = Issue(
        cause="none such",
        what="it broke",
        since=3,
        last=9,
        where=tuple(f"w{number}" for number in range(4)),
        workers=("worker_0", "worker_1"),
        rules=("none such",),
    )
    found = answers.problem_answer(issue)
    assert found["where"] == ["«w0»", "«w1»", "«w2»", "«w3»", "«worker_0»"]
    assert (found["number_of_places"], found["number_of_symptoms"]) == (6, 0)
    assert (found["cause"], found["rules"], found["resume_from"]) == ("«none such»", ["«none such»"], None)
    assert (found["since"], found["last"], found["what"]) == (3, 9, "«it broke»")
    assert answers._next([issue]) == [
        "around(step=3) shows what changed there",
        "tensor_statistics of a place under `where` shows it over the steps",
    ]
    assert answers._next([]) == []


def listed(name, tags=(), error=""):
    return SimpleNamespace(
        name=name,
        state="ended",
        steps=3,
        last_step=2,
        loss=0.25,
        best_loss=None,
        saved_at=None,
        error=error,
        origin=SimpleNamespace(tags=tags) if tags else None,
    )


def test_runs_are_listed_with_their_trouble_and_tags():
    runs = [listed("a", tags=tuple("abcdefg")), listed("b", error="cut")]
    runs[1].origin = SimpleNamespace(tags=())
    found = answers.runs_answer(runs, 2, shown_name=lambda run: f"runs/{run.name}")
    first, second = found["runs"]
    assert first["tags"] == ["«a»", "«b»", "«c»", "«d»", "«e»"]
    assert "trouble" not in first
    assert "tags" not in second
    assert (second["run"], second["trouble"], second["loss"]) == ("«runs/b»", "«cut»", 0.25)
    assert found["cut"] == []
    more = answers.runs_answer(runs, 9, shown_name=lambda run: run.name)
    assert more["cut"] == ["runs: 2 of 9; give a part of the name as `contains`"]


def test_short_answers_say_what_was_done():
    assert answers.error_answer("x" * 500)["error"] == "«" + "x" * 399 + "…»"
    assert answers.stop_answer(RUN, {"reason": "it diverged"})["reason"] == "«it diverged»"
    attached = answers.attached_answer(RUN, [SimpleNamespace(name="none such")])
    assert attached == {"note": NOTE, "run": "«a»", "rules": ["«none such»"], "cut": []}


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("12", 2), ("a1b", 3), (" ", 1), ("é", 2), ("\ud800", 3)],
)
def test_tokens_are_counted_by_letters_digits_and_bytes(text, count):
    assert tokens(text) == count


def test_an_answer_of_exactly_as_many_tokens_is_whole():
    answer = {"a": ["x" * 30] * 4}
    size = tokens(text_of({**answer, "cut": []}))
    assert fitted(answer, ["a"], size)["cut"] == []
    assert fitted(answer, ["a"], size - 1)["cut"] == ["a: 3 of 4"]
    assert fitted({"a": None, "b": [1]}, ["a", "b"], 100)["cut"] == []


@pytest.mark.parametrize(
    ("length", "most", "shown"), [(200, 200, 200), (201, 200, 200), (5, 5, 5), (6, 5, 5), (9000, 10, 10)]
)
def test_a_text_has_at_most_so_many_characters_between_its_marks(length, most, shown):
    text = marked("x" * length, most)
    assert len(text) == shown + 2
    assert text.endswith("…»") == (length > most)


@pytest.mark.parametrize(
    ("character", "escaped"),
    [("\x00", "\\x00"), ("\xff", "\xff"), ("\x9f", "\\x9f"), ("\u2028", "\\u2028"), ("\uffff", "\\uffff"),
     ("\U00010ffff"[0], "\\U00010fff"), ("\u3000", " "), ("~", "~"), ("`", "\\x60"), ("\u0100", "\u0100")],
)  # fmt: skip
def test_a_character_is_shown_or_escaped(character, escaped):
    assert shown_text(character) == escaped


def test_a_name_as_it_is_comes_before_one_that_looks_like_it():
    odd, plain = "a\n", "a\\x0a"
    assert found_in("a\\x0a", [odd, plain]) == plain
    assert found_in("a\\x0a", [odd]) == odd
    assert found_in("«a\\x0a»", ["b", odd, "a\\x0A"]) == odd
