"""Targets that learn: at several saved steps in a row."""

from smdebug_default_rules.loss.own_targets import TITLE
from tests.smdebug_default_rules.made_steps import Steps


def moved(*steps):
    """A run that has a target with a gradient at these of its steps."""
    run = Steps()
    for has_target in steps:
        if has_target:
            run.facts["own_target"] = {"discount": 0.98, "parameter": "Net_4.weight"}
        else:
            run.facts.pop("own_target", None)
        run.write()
    return run


def found(run):
    return [(step, finding.since) for step, finding in run.evaluate("LossInput") if finding.title == TITLE]


def test_a_target_that_learns_is_found_after_three_steps():
    assert found(moved(0, 1, 1, 1, 1)) == [(3, 1), (4, 1)]
    (_, finding), *_ = moved(1, 1, 1).evaluate("LossInput")
    assert (finding.tensor, finding.value, finding.cause) == ("Net_4.weight", 0.98, "loss input")


def test_one_now_and_then_passes():
    assert found(moved(1, 1, 0, 1, 1, 0, 1)) == []
