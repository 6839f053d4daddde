"""Rules on real failing trainings; `make rules-report` runs more seeds."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_rules.catalog import CATALOG
from tests.support.looking import each
from tests.trainings import pictures, sentences
from tests.trainings.failures import FAILURES, Failure


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.rule)
def test_a_rule_fires_on_a_failing_training_and_not_on_its_healthy_twin(case):
    for seed in each(
        (11, 12, 13) if isinstance(case, Failure) else (11,)
    ):  # a stalled training takes seconds
        assert case.fires(failing=True, seed=seed)
        assert not case.fires(failing=False, seed=seed)


@pytest.mark.parametrize("seed", [11, 12])
def test_a_failing_training_on_pictures_or_sentences_has_a_higher_loss(seed):
    for failing, healthy in (
        (pictures.trained(seed, normalised=False), pictures.trained(seed, normalised=True)),
        (sentences.trained(seed, padded_to=40), sentences.trained(seed, padded_to=None)),
    ):
        assert last_loss(healthy) < 0.9 * last_loss(failing)


def last_loss(run):
    loss = run.trial().tensor("loss")
    return np.mean([loss.value(step) for step in loss.steps()[-4:]])


def test_every_rule_that_can_fire_has_a_failing_training():
    assert {case.rule for case in FAILURES} == set(CATALOG) - {"CreateXgboostReport"}
