"""ARCHITECTURE.md draws the rooms that are there."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, text_of
from tests.test_architecture import ARROWS

PAGE = text_of(ROOT / "ARCHITECTURE.md")


def test_every_room_has_its_sentence():
    described = set(re.findall(r"^\| `(\w+)/?` \|", PAGE, re.MULTILINE))
    assert described >= set(ARROWS) - {"__main__"} | {"core"}


def test_every_file_that_the_page_names_is_there():
    for room, module in re.findall(r"`(\w+)/(\w+\.py)`", PAGE):
        places = [
            ROOT / room / module,
            ROOT / "layers/smdebug_core/python/smdebug" / room / module,
            ROOT / "rules" / room / module,
            ROOT / "functions" / room / module,
        ]
        assert any(place.is_file() for place in places), f"{room}/{module}"


def test_the_application_has_its_place():
    assert PAGE.count("\n## The application\n") == 1
