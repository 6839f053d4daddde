from __future__ import annotations

import re

from smdebug_rules.catalog import CATALOG
from smdebug_rules.reference import reference
from tests.docs.pages import ROOT, text_of

PAGE = ROOT / "docs" / "rules.md"


def test_the_page_about_the_rules_is_that_of_the_catalog():
    assert text_of(PAGE) == reference(), "run `make rules-page`"


def test_every_rule_has_a_row_and_a_chapter_with_each_of_its_parameters():
    page = text_of(PAGE)
    assert re.findall(r"^\| \[(\w+)\]\(#", page, flags=re.MULTILINE) == list(CATALOG)
    for name, entry in CATALOG.items():
        chapter = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for parameter in entry.parameters:
            assert f"| `{parameter.name}`" in chapter
            assert parameter.sentence.replace("|", "\\|") in chapter
