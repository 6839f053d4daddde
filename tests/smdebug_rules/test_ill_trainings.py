"""Real trainings that go wrong; `make rules-report` runs them over more seeds."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_rules.catalog import CATALOG
from tests.trainings import pictures, sentences
from tests.trainings.illnesses import ILLNESSES, Illness


@pytest.mark.parametrize("case", ILLNESSES, ids=lambda case: case.rule)
def test_a_rule_finds_its_illness_and_nothing_in_the_healthy_twin(case):
    for seed in (11, 12, 13) if isinstance(case, Illness) else (11,):  # the other takes seconds
        assert case.fires(ill=True, seed=seed)
        assert not case.fires(ill=False, seed=seed)


@pytest.mark.parametrize("seed", [11, 12])
def test_a_training_on_pictures_or_sentences_suffers_from_its_illness(seed):
    for ill, healthy in (
        (pictures.trained(seed, normalised=False), pictures.trained(seed, normalised=True)),
        (sentences.trained(seed, padded_to=40), sentences.trained(seed, padded_to=None)),
    ):
        assert last_loss(healthy) < 0.9 * last_loss(ill)


def last_loss(run):
    loss = run.trial().tensor("loss")
    return np.mean([loss.value(step) for step in loss.steps()[-4:]])


def test_there_is_an_illness_for_every_rule_that_can_fire():
    assert {case.rule for case in ILLNESSES} == set(CATALOG) - {"CreateXgboostReport"}
