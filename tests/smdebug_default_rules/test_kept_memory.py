"""What the default rules keep from step to step: little, whatever the run, and as good as never stopping."""

import zlib

import numpy as np
import pytest

from smdebug.rules.memory.state import restore_state, save_state
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from smdebug_default_rules.peaks import Peaks
from tests.smdebug_default_rules.made_runs import findings_of

ENOUGH = 16


def made(rule, run):
    return CATALOG[rule].load()(create_trial(run.place))


def peaks_of(values, names=("a",)):
    kept = {}
    for value in values:
        Peaks(kept, list(names), 1).add(np.full((1, len(names)), value))
    return Peaks(kept, list(names), 1)


@pytest.mark.parametrize("value", [3e-9, 0.7, 1.0, 42.0, -5e5])
def test_a_peak_is_kept_to_an_eighth(value):
    assert peaks_of([value]).largest()[0, 0] == pytest.approx(abs(value), rel=0.13)


def test_a_peak_halves_with_every_eight_smaller_values():
    assert peaks_of([64.0, *[0.1] * 16]).largest()[0, 0] == pytest.approx(16, rel=0.2)
    assert peaks_of([64.0, *[0.1] * 500]).largest()[0, 0] == pytest.approx(0.1, rel=0.2)


def test_values_out_of_all_bounds_give_a_peak_that_nothing_exceeds():
    assert peaks_of([1e30]).largest()[0, 0] == np.inf
    assert peaks_of([np.inf, 1.0]).largest()[0, 0] == np.inf


def test_missing_values_are_not_values():
    peaks = peaks_of([np.nan] * 9)
    assert np.isnan(peaks.largest()[0, 0])
    assert peaks.count()[0, 0] == 0
    assert peaks_of([2.0, *[np.nan] * 99]).largest()[0, 0] == pytest.approx(2, rel=0.13)


def test_names_may_change_their_order_come_and_go():
    kept = {}
    Peaks(kept, ["a", "b"], 1).add([[1.0, 100.0]])
    Peaks(kept, ["b", "c", "a"], 1).add([[1.0, 7.0, np.nan]])
    assert Peaks(kept, ["c", "b", "a"], 1).largest()[0] == pytest.approx([7, 100, 1], rel=0.13)
    assert Peaks(kept, ["c", "b", "a"], 1).count()[0].tolist() == [1, 2, 1]


def test_what_is_kept_does_not_grow_with_the_length_of_a_run(run):
    """The item of a group of rules is written twice at each step, and billed by its size."""
    for step in range(240):
        run.losses(float(np.float32(2 * 0.99**step + 0.1 * run.random.random())))
    run.hook.close()
    trial = create_trial(run.place)
    rules = [entry.load()(trial) for entry in CATALOG.values()]
    sizes = {}
    for step in trial.steps():
        for rule in rules:
            findings_of(rule, [step])
        if step in (100, 239):
            sizes[step] = sum(len(zlib.compress(save_state(rule).data)) for rule in rules)
    assert sizes[239] < 1.1 * sizes[100], "a few more means of blocks, and longer numbers"


def test_states_of_earlier_versions_are_read_and_become_small(run):
    """They had every value of the last 16 steps, the steps of 64 losses, and the losses of a block."""
    run.write(steps=30).hook.close()
    trial = create_trial(run.place)
    corruption, stuck = made("ElementCorruption", run), made("StuckLoss", run)
    corruption.__dict__["past"] = corruption.__dict__["magnitudes"] = {
        "updates": {"names": ["update/Net_2.weight"], "values": np.ones((1, ENOUGH), np.float32)}
    }
    del corruption.peaks
    stuck.losses = {
        "count": 2,
        "first": [2.3, 2.3],
        "last": [2.3, 2.3],
        "steps": [0, 1],
        "since": 0,
    }
    stuck.__dict__["rest"] = [(0, 2.3), (1, 2.3)]
    del stuck.open_block
    for old in (corruption, stuck):
        rule = made(old.rule_name, run)
        restore_state(rule, save_state(old))
        assert findings_of(rule, trial.steps()) == []
        assert not {"past", "magnitudes", "rest"} & set(vars(rule))
    assert rule.losses["step"] == trial.steps()[-1]
