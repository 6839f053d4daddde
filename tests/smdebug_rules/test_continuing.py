"""A rule that continues from its saved state finds what it would have found without interruption."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.mode_keys import ModeKeys
from smdebug.rules import restore_state, save_state
from smdebug_rules.catalog import CATALOG
from tests.rules.made_runs import STANDARD_COLLECTIONS, MadeRun
from tests.smdebug_rules.failing_parameters import COLLECTIONS, NAMES, TENSORS, made, value
from tests.smdebug_rules.support import findings_by_step

STEPS = st.lists(
    st.tuples(
        st.integers(1, 7),
        st.sampled_from([ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL]),
        TENSORS,
    ),
    min_size=1,
    max_size=10,
)


def written(steps):
    run, step = MadeRun(collections={**STANDARD_COLLECTIONS, **COLLECTIONS}), -1
    for gap, mode, tensors in steps:
        step += gap
        run.save(step, {k: value(k, v) for k, v in tensors.items()}, mode=mode)
    return run.end().trial(), step


def as_text(found):
    return {step: [str(finding) for finding in findings] for step, findings in found.items()}


@pytest.mark.parametrize("name", CATALOG)
@settings(max_examples=15, deadline=None)
@given(steps=STEPS, others=STEPS, data=st.data())
def test_a_rule_continued_from_its_state_finds_the_same(name, steps, others, data):
    (trial, last), (other, _) = written(steps), written(others)
    straight = as_text(findings_by_step(made(name, trial, other)))

    pause = data.draw(st.integers(0, last + 1), label="pause")
    first = made(name, trial, other)
    found = as_text(findings_by_step(first, 0, pause))
    second = made(name, trial, other)
    state = save_state(first)
    assert state.left_out == ()
    restore_state(second, bytes(state))
    found |= as_text(findings_by_step(second, pause))
    assert found == straight


def test_the_parameters_are_such_that_every_rule_fires_now_and_then():
    silent = {"CreateXgboostReport", "StalledTrainingRule"}  # one never does, one needs time
    firing = {name for name in CATALOG if name not in silent and _fires_somewhere(name)}
    assert firing == set(CATALOG) - silent


def _fires_somewhere(name):
    steps, step = [], 0
    for at, mode in enumerate([ModeKeys.TRAIN, ModeKeys.EVAL] * 4 + [ModeKeys.GLOBAL] * 2):
        number = (2.0, 5.0, 0.0)[at % 3]
        tensors = dict.fromkeys([*NAMES, "feature_importance/weight/f1", "trees/Node"], number)
        tensors |= {"predictions": 1.0, "feature_importance/weight/f0": 0.1, "val_loss": float(at)}
        tensors |= {"a_tanh_input": 100.0, "bad": float("inf")}
        steps.append((4, mode, tensors))
        step += 4
    (trial, _), (other, _) = written(steps), written(steps[1:])
    return bool(findings_by_step(made(name, trial, other)))
