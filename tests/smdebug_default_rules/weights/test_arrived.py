"""An optimizer that has arrived at a solution, and one that never moves."""

import pytest

from tests.smdebug_default_rules.made_steps import Steps


def still(optimizer, since):
    """A training in which no step changes a parameter from one of its steps on."""
    run = Steps()
    run.lasting["optimizers"][0]["class"] = optimizer
    for at in range(10):
        if at >= since:
            run.kinds["updates"] = {name: 0 * update for name, update in run.kinds["updates"].items()}
        run.write()
    return run


@pytest.mark.parametrize(
    ("optimizer", "since", "found"),
    [("LBFGS", 5, False), ("LBFGS", 0, True), ("Adam", 5, True), ("SGD", 5, True)],
)
def test_only_one_that_stops_at_a_solution_may_stand_still_after_it_has_moved(optimizer, since, found):
    assert bool(still(optimizer, since).evaluate("LostUpdates")) == found
