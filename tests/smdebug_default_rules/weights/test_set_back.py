"""Weights that steps change and that have their old values again at the next."""

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

NAME = "Net_0.weight"


def run(steps, *, back=True, update=1e-3, apart=1, until=None, name=NAME):
    """Write steps whose weight is drawn anew, or as it was."""
    made = Steps()
    kept = made.kinds["parameters"][name].copy()
    for number in range(steps):
        if back and (until is None or number < until):
            made.kinds["parameters"][name] = kept.copy()
        else:
            made.kinds["parameters"][name] = made.kinds["parameters"][name] + np.float32(number * 1e-3)
        made.kinds["updates"][f"update/{name}"] = np.float32(update) * np.sign(kept)
        made.write()
        made.skip(*[2.3] * (apart - 1))
    return made


def found(made):
    return [(step, finding.since, finding.value) for step, finding in made.evaluate("LostUpdates")]


def test_a_weight_that_begins_six_saved_steps_over_thirty_with_the_same_values_is_set_back():
    assert found(run(5, apart=10)) == []
    assert found(run(6, apart=10)) == [(50, 0, 6)]
    assert found(run(6, apart=6)) == [(30, 0, 6)]
    assert found(run(6, apart=5)) == []  # an inner loop


@pytest.mark.parametrize("changes", [{"back": False}, {"until": 5}, {"update": 0.0}, {"update": 1e-6}])
def test_a_weight_that_moves_or_is_hardly_changed_is_not_set_back(changes):
    assert [item for item in found(run(8, apart=10, **changes)) if item[2]] == []


def test_a_weight_that_is_clipped_to_two_values_is_not_set_back():
    made = Steps()
    for _ in range(8):
        made.kinds["parameters"][NAME] = np.full_like(made.kinds["parameters"][NAME], 0.01)
        made.write()
        made.skip(*[2.3] * 9)
    assert found(made) == []
