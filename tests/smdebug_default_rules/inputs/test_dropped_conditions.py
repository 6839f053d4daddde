"""Conditions that a model is given and replaces with none, and models that are given one alone."""

import numpy as np
import pytest

from smdebug_default_rules.inputs.dropped_conditions import LEAST_APART, TITLE
from tests.smdebug_default_rules.made_steps import Steps

TABLE, ROWS, CONDITIONS = "Net_kinds.weight", 6, 5
STEPS = LEAST_APART + 1
ALL = np.arange(32) % CONDITIONS


def conditioned(given=ALL, used=(CONDITIONS,), steps=STEPS, kind="Embedding", rows=ROWS, others=()):
    """A run whose model is given these conditions, and whose table gets gradients for some rows."""
    run = Steps()
    run.lasting["modules"] = [*run.lasting["modules"], ["kinds", kind, False]]
    run.lasting["optimizers"][0]["groups"][0]["parameters"].append(TABLE)
    run.facts["shapes"] = [[32, 8], list(np.shape(given))]
    for _ in range(steps):
        gradient = np.zeros((rows, 4), np.float32)
        gradient[[*used]] = 0.1
        run.kinds["parameters"][TABLE] = run.normal(rows, 4)
        run.kinds["gradients"][f"gradient/{TABLE}"] = gradient
        run.kinds["updates"][f"update/{TABLE}"] = 0.1 * gradient
        for number, values in enumerate((given, *others)):
            run.kinds["inputs"][f"Net_input_{number + 1}"] = np.asarray(values)
        run.write()
    return run


def found(run):
    return [
        (step, finding.since, finding.tensor)
        for step, finding in run.evaluate("UnreachedParameters")
        if finding.title == TITLE
    ]


@pytest.mark.parametrize("used", [0, CONDITIONS])
def test_conditions_that_are_all_replaced_are_found(used):
    assert found(conditioned(used=[used]))[0] == (LEAST_APART, 0, TABLE)


def test_they_are_found_where_none_is_the_first_row_or_they_are_in_a_column():
    assert found(conditioned(given=ALL + 1, used=[0]))
    assert found(conditioned(given=ALL[:, None]))


@pytest.mark.parametrize(
    "healthy",
    [
        {"used": (2, CONDITIONS)},
        {"given": np.full(32, 3), "used": [3]},  # a single condition is given
        {"given": np.full(32, CONDITIONS)},  # none is given on purpose
        {"given": ALL.astype(np.float32)},
        {"given": np.arange(32) % 3},  # they may be something else, such as lengths
        {"given": np.arange(32)},  # more than the table has rows
        {"others": [np.full(32, CONDITIONS)]},  # another input asks for the row
        {"given": ALL[:7]},  # a few rows may have the same by chance
        {"steps": STEPS - 1},
        {"kind": "Linear"},
        {"rows": 3, "given": np.arange(32) % 2, "used": [2]},  # types of tokens, of which there is one
    ],
)
def test_others_pass(healthy):
    assert found(conditioned(**healthy)) == []


def test_a_table_that_was_used_for_others_meanwhile_passes():
    run = conditioned(steps=STEPS - 1)
    run.kinds["parameters"][TABLE] = run.normal(ROWS, 4)
    run.kinds["gradients"][f"gradient/{TABLE}"] = run.normal(ROWS, 4)
    run.kinds["updates"][f"update/{TABLE}"] = run.normal(ROWS, 4)
    run.kinds["inputs"]["Net_input_1"] = ALL
    run.write()
    assert found(run) == []
