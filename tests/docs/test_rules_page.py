"""docs/rules.md follows the catalog of the rules."""

from __future__ import annotations

import re

from smdebug_rules.catalog import CATALOG
from smdebug_rules.reference import reference
from tests.docs.pages import ROOT, text_of

PAGE = ROOT / "docs" / "rules.md"


def test_the_rules_page_is_up_to_date_with_the_catalog():
    assert text_of(PAGE) == reference(), "run `make rules-page`"


def test_every_rule_has_a_row_and_a_section_with_all_parameters():
    page = text_of(PAGE)
    assert re.findall(r"^\| \[(\w+)\]\(#", page, flags=re.MULTILINE) == list(CATALOG)
    for name, entry in CATALOG.items():
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for parameter in entry.parameters:
            assert f"| `{parameter.name}`" in section
            assert parameter.sentence.replace("|", "\\|") in section
