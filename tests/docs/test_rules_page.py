"""docs/rules.md follows the catalog of the rules."""

from __future__ import annotations

import re

from smdebug_default_rules.catalog import CATALOG as DEFAULT_RULES
from smdebug_default_rules.catalog import TAKES_THE_PLACE_OF
from smdebug_rules.catalog import CATALOG
from smdebug_rules.reference import reference
from tests.docs.pages import ROOT, text_of
from tests.support.looking import each

PAGE = ROOT / "docs" / "rules.md"


def test_the_rules_page_is_up_to_date_with_the_catalog():
    assert text_of(PAGE) == reference(), "run `make rules-page`"


def test_every_rule_has_a_row_and_a_section_with_all_parameters():
    page = text_of(PAGE)
    assert re.findall(r"^\| \[(\w+)\]\(#", page, flags=re.MULTILINE) == [*DEFAULT_RULES, *CATALOG]
    for name, entry in CATALOG.items():
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for parameter in entry.parameters:
            assert f"| `{parameter.name}`" in section
            assert parameter.sentence.replace("|", "\\|") in section


def test_every_default_rule_has_a_section_with_what_to_try():
    page = text_of(PAGE)
    for name, entry in each(DEFAULT_RULES.items(), at_least=30):
        section = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        for cause, sentences in entry.load().advice.items():
            assert f"What to try ({cause})" in section
            assert all(f"- {sentence}" in section for sentence in sentences)


def test_default_rules_take_the_place_of_rules_that_there_are():
    assert TAKES_THE_PLACE_OF.keys() <= DEFAULT_RULES.keys()
    assert {old for olds in TAKES_THE_PLACE_OF.values() for old in olds} <= CATALOG.keys()
