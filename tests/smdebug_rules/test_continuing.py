"""A rule that goes on from its saved state finds what it would have found without the break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.mode_keys import ModeKeys
from smdebug.rules import restore_state, save_state
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import MadeRun
from tests.smdebug_rules.support import findings_by_step

NUMBERS = st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0, 1e-9, 100.0, float("nan"), float("inf")])
STEPS = st.lists(
    st.tuples(
        st.integers(1, 7),
        st.sampled_from([ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL]),
        st.dictionaries(
            st.sampled_from(["loss", "val_loss", "gradient/a", "weight"]), NUMBERS, min_size=1
        ),
    ),
    min_size=1,
    max_size=10,
)


def written(steps):
    run, step = MadeRun(), -1
    for gap, mode, tensors in steps:
        step += gap
        run.save(step, {k: np.float32(v) for k, v in tensors.items()}, mode=mode)
    return run.end().trial(), step


def made(name, trial, other):
    extra = {
        "AllZero": {"tensor_regex": ".*", "threshold": "50"},
        "UnchangedTensor": {"tensor_regex": ".*", "num_steps": "2"},
        "SimilarAcrossRuns": {"other_trial": other},
        "LossNotDecreasing": {"num_steps": "3"},
        "WeightUpdateRatio": {"num_steps": "4"},
    }
    return CATALOG[name].load()(trial, **extra.get(name, {}))


def told(found):
    return {step: [str(one) for one in findings] for step, findings in found.items()}


@pytest.mark.parametrize("name", CATALOG)
@settings(max_examples=25, deadline=None)
@given(steps=STEPS, others=STEPS, data=st.data())
def test_a_rule_continued_from_its_state_finds_the_same(name, steps, others, data):
    (trial, last), (other, _) = written(steps), written(others)
    straight = told(findings_by_step(made(name, trial, other)))

    pause = data.draw(st.integers(0, last + 1), label="pause")
    first = made(name, trial, other)
    found = told(findings_by_step(first, 0, pause))
    second = made(name, trial, other)
    restore_state(second, bytes(save_state(first)))
    found |= told(findings_by_step(second, pause))
    assert found == straight
