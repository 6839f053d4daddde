from __future__ import annotations

from tests.seeds.blocks import BLOCKS, CHANGES, NOT_RUN, RUN_BY
from tests.seeds.table import PAGE, page


def test_every_block_runs_or_has_a_reason_not_to():
    page()  # this loads all tests
    assert set(RUN_BY) | set(NOT_RUN) == set(BLOCKS)
    assert not set(RUN_BY) & set(NOT_RUN)
    assert set(CHANGES) <= set(RUN_BY)


def test_the_page_is_up_to_date_with_the_tests():
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.seeds.table writes it"
