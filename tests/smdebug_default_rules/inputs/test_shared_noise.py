"""Noise that is drawn for each row of a batch, or once for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_default_rules.inputs.shared_noise import TITLE
from tests.smdebug_default_rules.made_steps import Steps

ROWS, COLUMNS = 32, 24


def shared(
    common=1.0,
    steps=10,
    *,
    name="t",
    rows=ROWS,
    columns=COLUMNS,
    mean=0.0,
    distinct=ROWS,
    shapes=None,
    **term,
):
    """A run whose targets have this share of their deviation in common, in each batch."""
    run, random = Steps(), np.random.default_rng(0)
    run.facts["shapes"] = shapes or [[rows, columns], [rows]]
    run.facts["distinct_rows"], run.facts["input_names"] = distinct, ["x", name]
    for _ in range(steps):
        own = (1 - common**2) ** 0.5 * random.normal(size=(rows, columns))
        targets = mean + common * random.normal(size=columns) + own
        run.facts["loss"] = {
            "terms": [
                {
                    "criterion": "mean squared error",
                    "rows": rows,
                    "target_rows": rows,
                    "columns": columns,
                    "means": targets.mean(0).tolist(),
                    "variances": targets.var(0).tolist(),
                    "lowest": float(targets.min()),
                    "highest": float(targets.max()),
                    **term,
                }
            ]
        }
        run.kinds["inputs"] = {"Net_input_0": run.normal(rows, columns), "Net_input_1": run.normal(rows)}
        run.write()
    return run


def found(run):
    return [step for step, at in run.evaluate("RepeatedInput") if at.title == TITLE]


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        (shared(steps=11), [9, 10]),
        (shared(0.75), [9]),  # a velocity, of which the data are a part
        (shared(name="condition"), [9]),  # rows that are equal
        (shared(steps=9), []),
        (shared(0.75, name="condition"), []),
        (shared(0.0), []),
        (shared(0.5), []),  # one time for each batch
        (shared(columns=8), []),
        (shared(mean=1.0), []),  # as data have
        (shared(distinct=10), []),
        (shared(shapes=[[ROWS, COLUMNS]]), []),
        (shared(criterion="binary cross entropy"), []),
    ],
)
def test_rows_that_share_a_noise_are_told_from_others(run, steps):
    assert found(run) == steps


def test_it_says_how_much_is_shared_and_what_to_draw():
    ((_, finding),) = [at for at in shared(0.75).evaluate("RepeatedInput") if at[1].title == TITLE]
    assert finding.cause == "repeated input"
    assert 0.35 < finding.value < 0.9
    assert "rows with noise of their own have 3%" in finding.why[0]
    assert "torch.randn_like(batch)" in finding.advice[0]
