"""The estimated cost of a run matches the cost of the functions' calls."""

from __future__ import annotations

import contextlib
import io

import pytest

from bench.costs.cost import measure
from smdebug.service.costs import PRICES, Cost, dollars, usage_of_step

# How long a function computes depends on the machine; the calls that it makes do not.
COUNTED = ("write unit", "read unit", "S3 GET", "SQS request", "invocation", "execution", "table byte")


@pytest.mark.parametrize(("workers", "steps"), [(1, 20), (8, 20), (17, 10), (64, 4), (256, 2)])
def test_the_usage_of_a_step_matches_the_calls(workers, steps):
    with contextlib.redirect_stdout(io.StringIO()):
        bill, _ = measure(workers, steps, 10)
    counted = {what: bill[what] / steps for what in COUNTED}
    estimated = usage_of_step(workers)
    if workers <= 64:
        for what in COUNTED:
            few = 15 if what == "table byte" else 0.3
            assert estimated[what] == pytest.approx(counted[what], rel=0.02, abs=few), what

    def priced(used):
        return sum(PRICES[what] * used[what] for what in COUNTED)

    assert priced(estimated) == pytest.approx(priced(counted), rel=0.03)


def test_a_million_steps_cost_what_is_promised():
    assert 11 < Cost(1_000_000, 1).dollars < 13
    assert 22 < Cost(1_000_000, 8).dollars < 26
    assert 1900 < Cost(1_000_000, 1024).dollars < 2300
    assert Cost(1200, 1).dollars == pytest.approx(1.2e-3 * Cost(1_000_000, 1).dollars)


def test_a_cost_has_two_significant_digits():
    assert str(Cost(1200, 1)) == "$0.014"
    texts = [dollars(amount) for amount in (0, 0.0000312, 0.0999, 0.25, 1.234, 12.3, 1880.4)]
    assert texts == ["$0.00", "$0.000031", "$0.10", "$0.25", "$1.23", "$12.30", "$1,880"]
