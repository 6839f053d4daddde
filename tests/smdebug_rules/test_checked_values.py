"""The number that a rule compared with its limit is known of healthy trainings, too."""

from __future__ import annotations

import pytest

from smdebug.runs.evaluation.rule_results import PartialResult
from smdebug.runs.evaluation.rule_steps import evaluate_step
from smdebug_rules.catalog import CATALOG
from tests.trainings.failures import FAILURES, Failure

ABOVE = {
    "AllZero",
    "ClassImbalance",
    "DeadRelu",
    "FeatureImportanceOverweight",
    "NLPSequenceRatio",
    "Overfit",
    "Overtraining",
    "SaturatedActivation",
    "TensorVariance",
    "TreeDepth",
}
BELOW = {"LossNotDecreasing", "VanishingGradient", "WeightUpdateRatio"}
CASES = [case for case in FAILURES if isinstance(case, Failure) and case.rule in ABOVE | BELOW]


def checked(case: Failure, *, failing: bool) -> tuple[float, float] | None:
    """Return the lowest and the highest number that the rule compared with its limit."""
    run = (case.failing if failing else case.healthy)(3)
    rule = CATALOG[case.rule].load()(run.trial(), **case.parameters)
    result = PartialResult()
    for step in run.trial().steps():
        if step >= case.first_step:
            evaluate_step(rule, step, result)
    return result.checked


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.what}")
def test_a_healthy_training_has_a_number_on_the_other_side_of_that_of_a_failing_one(case):
    healthy, failing = (checked(case, failing=failing) for failing in (False, True))
    assert healthy is not None
    assert failing is not None
    if case.rule in ABOVE:
        assert healthy[1] < failing[1]
    else:
        assert healthy[0] > failing[0]
