"""Real trainings that go wrong; `make rules-report` runs them over more seeds."""

from __future__ import annotations

import pytest

from smdebug_rules.catalog import CATALOG
from tests.trainings.illnesses import ILLNESSES


@pytest.mark.parametrize("case", ILLNESSES, ids=lambda case: case.rule)
def test_a_rule_finds_its_illness_and_nothing_in_the_healthy_twin(case):
    assert case.fires(ill=True, seed=11)
    assert not case.fires(ill=False, seed=11)


def test_there_is_an_illness_for_every_rule_that_can_fire():
    assert {case.rule for case in ILLNESSES} == set(CATALOG) - {"CreateXgboostReport"}
