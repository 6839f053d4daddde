"""ARCHITECTURE.md describes the rooms that exist and is short; the decisions have pages of one form."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, text_of
from tests.test_architecture import ARROWS

PAGE = text_of(ROOT / "ARCHITECTURE.md")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[a-z]*.md"))

LAYER = ROOT / "layers/smdebug_core/python"
ROOTS = (ROOT, LAYER, LAYER / "smdebug", ROOT / "rules", ROOT / "functions")


def test_every_room_is_described():
    described = set(re.findall(r"^\| `(\w+)/?` \|", PAGE, re.MULTILINE))
    assert described >= set(ARROWS) - {"__main__"}


def test_every_file_that_the_page_names_exists():
    named = re.findall(r"(?<![\w/.])(?:\w+/)+\w+\.py", PAGE)
    assert "saving/recording/recorder.py" in named
    assert not [name for name in named if not any((root / name).is_file() for root in ROOTS)]


def test_the_application_has_one_section():
    assert PAGE.count("\n## The application\n") == 1


def test_the_page_is_read_in_ten_minutes():
    assert len(PAGE.split()) <= 2300


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_a_date_a_reason_and_what_would_change_it(page):
    title, date, *rest = text_of(page).split("\n\n")
    assert title.startswith("# ")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", date)
    assert rest[::2] == ["## Decision", "## Reason", "## What would change it"]
    assert f"[{title[2:]}]({page.name})" in text_of(page.with_name("README.md"))


def test_every_file_that_a_decision_names_exists():
    named = {name for page in DECISIONS for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text_of(page))}
    assert len(named) > 5
    assert not [name for name in named if not any((root / name).is_file() for root in ROOTS)]
