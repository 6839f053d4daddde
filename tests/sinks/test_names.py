"""Names that a tool forbids are mapped, each to its own."""

from __future__ import annotations

import re

from smdebug.sinks.names import Names

FORBIDDEN = r"[^\w/]"


def test_an_allowed_name_stays_as_it_is():
    names = Names(FORBIDDEN, 20)
    assert names.allowed("training/loss") == "training/loss"
    assert names.changed == {}
    assert names.in_words("X") == ""


def test_names_that_differ_in_forbidden_characters_stay_apart_and_the_same_everywhere():
    given = ["loss[0]", "loss(0)", "loss_0_"]
    found = [Names(FORBIDDEN, 40).allowed(name) for name in given]
    assert len({*found}) == 3
    assert found[2] == "loss_0_"
    names = Names(FORBIDDEN, 40)
    assert [names.allowed(name) for name in reversed(given)] == found[::-1]
    assert not any(re.search(FORBIDDEN, name) for name in found)


def test_a_long_name_is_cut_and_stays_apart_from_its_neighbour():
    names = Names(FORBIDDEN, 30)
    found = [names.allowed("a" * 40 + end) for end in "xy"]
    assert found[0] != found[1]
    assert [len(name) for name in found] == [30, 30]


def test_what_was_changed_is_said_in_a_sentence():
    names = Names(FORBIDDEN, 40)
    for place in range(5):
        names.allowed(f"loss[{place}]")
    text = names.in_words("MLflow")
    assert text.startswith("MLflow does not allow all names: loss[0] is loss_0__")
    assert text.endswith("and 2 others")


def test_a_long_name_and_one_of_several_lines_are_said_on_one_short_line():
    names = Names(r"[^a-z]", 250)
    changed = {name: names.allowed(name) for name in ("n" * 400, "two\nlines")}
    said = names.in_words("MLflow")
    assert "two\\nlines is two_lines_" in said
    assert "\n" not in said
    assert changed["n" * 400][-9:] in said
    assert len(said) < 300
