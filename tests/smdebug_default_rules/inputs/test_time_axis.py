"""Recurrent layers whose steps are the rows of a batch, and those whose rows are where they belong."""

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import TERM
from tests.smdebug_default_rules.made_steps import Steps

ROWS, PLACES = 32, 12
CLASSES = {**TERM, "ignored": 0.0}
NUMBERS = {"criterion": "mean squared error", "rows": ROWS, "target_rows": ROWS, "columns": 1}


def read(
    output=(ROWS, PLACES, 16), hidden=PLACES, *, given=(ROWS, PLACES), terms=(CLASSES,), kind="LSTM", steps=3
):
    """A run with a recurrent layer that returned this for each place, with so many hidden states."""
    run = Steps()
    run.lasting["modules"] = [["Net", "Net", False], ["reader", kind, False], ["head", "Linear", False]]
    run.facts |= {"shapes": [[*given, 8]], "loss": {"factor": 1.0, "terms": list(terms)}}
    for _ in range(steps):
        run.kinds["outputs"] |= {
            "reader_output_0": np.ones(output, np.float32),
            "reader_output_1": np.ones((1, hidden, 16), np.float32),
        }
        run.write()
    return run


def found(run):
    return [(step, finding.tensor, finding.since) for step, finding in run.evaluate("BatchShape")]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("terms", [(CLASSES,), (NUMBERS,), (CLASSES, NUMBERS)])
def test_a_layer_that_goes_from_row_to_row_is_found(kind, terms):
    assert found(read(kind=kind, terms=terms)) == [(1, "reader_output_0", 0), (2, "reader_output_0", 0)]


def test_a_layer_whose_input_is_transposed_although_it_takes_rows_first_is_found():
    run = read((PLACES, ROWS, 16), PLACES)
    assert found(run)
    (_, finding), *_ = run.evaluate("BatchShape")
    assert "do not transpose" in finding.advice[0]


@pytest.mark.parametrize(
    "healthy",
    [
        {"hidden": ROWS},  # rows first, as it was said
        {"output": (PLACES, ROWS, 16), "hidden": ROWS},  # transposed for the layer
        {"output": (PLACES, ROWS, 16), "hidden": ROWS, "given": (PLACES, ROWS)},
        {"output": (ROWS, ROWS, 16), "hidden": ROWS, "given": (ROWS, ROWS)},  # nobody knows
        {"output": (ROWS, 1, 16), "hidden": 1, "given": (ROWS, 1)},  # a single series
        {"kind": "Linear"},
        {"output": (4 * ROWS, PLACES, 16)},  # the words of sentences of texts
        {"output": (ROWS, PLACES), "hidden": PLACES},  # no batch at all
        {"terms": ()},
        {"terms": ({**CLASSES, "rows": ROWS * PLACES},)},  # each place has a label
        {"terms": ({**CLASSES, "targets": ROWS * PLACES},)},
        {"terms": ({**CLASSES, "ignored": 0.5},)},
        {"terms": ({**NUMBERS, "columns": PLACES},)},  # each place has a number
        {"terms": (CLASSES, {**NUMBERS, "columns": 3 * PLACES})},
        {"terms": ({"criterion": "Kullback-Leibler divergence", "rows": ROWS},)},
    ],
)
def test_other_layers_pass(healthy):
    assert found(read(**healthy)) == []


def test_one_step_is_not_enough():
    assert found(read(steps=1)) == []
