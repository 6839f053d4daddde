from __future__ import annotations

import re

from smdebug_rules.catalog import CATALOG
from tests.docs.pages import ROOT, text_of


def test_the_page_has_a_row_for_every_built_in_rule():
    page = text_of(ROOT / "docs" / "rules.md")
    rows = re.findall(r"^\| (\w+) \| (?!fires)", page, flags=re.MULTILINE)
    assert rows == list(CATALOG)
