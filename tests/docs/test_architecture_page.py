"""ARCHITECTURE.md describes the rooms that exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, text_of
from tests.test_architecture import ARROWS

PAGE = text_of(ROOT / "ARCHITECTURE.md")


def test_every_room_is_described():
    described = set(re.findall(r"^\| `(\w+)/?` \|", PAGE, re.MULTILINE))
    assert described >= set(ARROWS) - {"__main__"} | {"core"}


def test_every_file_that_the_page_names_exists():
    for room, module in re.findall(r"`(\w+)/(\w+\.py)`", PAGE):
        places = [
            ROOT / room / module,
            ROOT / "layers/smdebug_core/python/smdebug" / room / module,
            ROOT / "rules" / room / module,
            ROOT / "functions" / room / module,
        ]
        assert any(place.is_file() for place in places), f"{room}/{module}"


def test_the_application_has_one_section():
    assert PAGE.count("\n## The application\n") == 1
