"""Text of a run cannot leave its marks, end its line or hide, and a name that was shown is found again."""

from __future__ import annotations

import json
import unicodedata

import pytest

from smdebug.ui.agents.marking import CLOSE, OPEN, found_in, marked, shown_text, unmarked
from tests.ui.agents.hostile import HOSTILE, TAGS


@pytest.mark.parametrize("text", [*HOSTILE, *TAGS], ids=range(len(HOSTILE) + len(TAGS)))
def test_hostile_text_stays_between_one_pair_of_marks_on_one_visible_line(text):
    shown = marked(text)
    inner = shown[1:-1]
    assert (shown[0], shown[-1]) == (OPEN, CLOSE)
    assert not set(inner) & set(f"{OPEN}{CLOSE}<>`\n\r")
    assert {unicodedata.category(character)[0] for character in inner} <= set("LMNPSZ")
    assert " " not in {character for character in inner if unicodedata.category(character) == "Zs"} - {" "}
    assert len(shown) <= 202
    assert json.loads(json.dumps(shown)) == shown


def test_escapes_say_what_was_there():
    assert shown_text("a\n<b>\u200b«\U000e0041") == "a\\x0a\\x3cb\\x3e\\u200b\\xab\\U000e0041"


@pytest.mark.parametrize("selector", ["\ufe0f", "\U000e0101", "\u3164", "\u034f"])
def test_characters_in_which_text_can_hide_are_written_out(selector):
    assert shown_text(f"a{selector}").startswith("a\\")


def test_names_of_ordinary_tensors_and_languages_are_as_they_are():
    for name in ("gradient/fc.weight", "módulo/層_0", "layers[0].q_proj (LoRA)", "a:b=c|d"):
        assert marked(name) == f"«{name}»"


def test_a_secret_is_left_out():
    assert "hunter2hunter2" not in marked("--password hunter2hunter2")


@pytest.mark.parametrize("name", HOSTILE[:7], ids=range(7))
def test_a_name_is_found_as_it_is_and_as_it_was_shown(name):
    for given in (name, shown_text(name), f"«{shown_text(name)}»"):
        assert found_in(given, ["loss", name]) == name


def test_an_unknown_name_is_not_found():
    assert found_in("«los»", ["loss"]) is None
    assert unmarked(" «loss» ") == "loss"
