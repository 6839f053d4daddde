"""Samplers that draw rows by weights: those of which the weights are too few, or turned round."""

import pytest

from smdebug_default_rules.inputs.sampler_weights import LEAST_STEPS, TITLE, TITLE_OF_FEW
from tests.smdebug_default_rules.made_runs import TERM
from tests.smdebug_default_rules.made_steps import Steps

COUNTS = (200, 100, 100)


def drawn(*labels, kinds, steps=LEAST_STEPS, **term):
    """A run whose sampler has such weights, with so many labels of each class at each step."""
    run = Steps()
    run.lasting["sampler"] = {
        "rows": 400,
        "weights": 400,
        "batch": 32,
        "kinds": [list(kind) for kind in kinds],
    }
    counts = [[number, count] for number, count in enumerate(labels)]
    run.facts["loss"] = {"factor": 1.0, "terms": [{**TERM, "counts": counts, **term}]}
    return run.write(steps=steps)


def sampled(weights, rows=400, batch=32):
    """A run whose sampler has so many weights for so many rows."""
    run = Steps()
    run.lasting["sampler"] = {"rows": rows, "weights": weights}
    if batch:
        run.lasting["sampler"]["batch"] = batch
    return run.write(steps=3)


def found(run, rule="LabelBalance", title=TITLE):
    return [(step, finding.since) for step, finding in run.evaluate(rule) if finding.title == title]


@pytest.mark.parametrize("scale", [1, 1 / 400])
def test_weights_that_are_the_counts_of_classes_are_found(scale):
    run = drawn(64, 16, 16, kinds=[(100 * scale, 200), (200 * scale, 200)])
    assert found(run)[0] == (LEAST_STEPS - 1, 0)


def test_they_are_found_where_the_model_says_yes_or_no():
    term = {
        "criterion": "binary cross entropy with logits",
        "columns": 1,
        "means": [0.9],
        "variances": [0.09],
    }
    assert found(drawn(kinds=[(0.25, 100), (0.75, 300)], counts=None, target_rows=50, **term))


@pytest.mark.parametrize(
    "healthy",
    [
        {"kinds": [(1, 200), (2, 100)]},  # the rare class has the larger weight
        {"kinds": [(1, 200), (1.4, 200)]},  # not by the counts
        {"kinds": [(100, 200), (200, 200)], "labels": (32, 32, 32)},  # not of classes: by how good rows are
        {"kinds": [(100, 200), (200, 200)], "steps": LEAST_STEPS - 1},
        {"kinds": [(200, 400)]},
        {"kinds": [(0, 200), (200, 200)]},
        {"kinds": [(100, 100), (120, 120)]},  # nearly as many of each
    ],
)
def test_other_weights_pass(healthy):
    labels = healthy.pop("labels", (64, 16, 16))
    assert found(drawn(*labels, **healthy)) == []


def test_the_labels_of_another_sampler_are_counted_anew():
    run = drawn(64, 16, 16, kinds=[(100, 200), (200, 200)], steps=LEAST_STEPS - 1)
    run.lasting["sampler"] = {**run.lasting["sampler"], "kinds": [[10, 200], [20, 200]]}
    assert found(run.write(steps=LEAST_STEPS - 1)) == []
    assert found(run.write())[0][1] == LEAST_STEPS - 1


@pytest.mark.parametrize(
    ("weights", "rows", "batch"),
    [(10, 400, 32), (10, 40, 32), (32, 3200, 32), (1000, 1_000_000, 256), (3, 300, 0)],
)
def test_a_weight_for_each_class_is_found(weights, rows, batch):
    assert found(sampled(weights, rows, batch), "RepeatedInput", TITLE_OF_FEW)[0] == (0, 0)


@pytest.mark.parametrize(
    ("weights", "rows", "batch"), [(400, 400, 32), (10, 39, 32), (32, 3199, 32), (300, 400, 32), (3, 299, 0)]
)
def test_a_weight_for_each_row_passes(weights, rows, batch):
    assert found(sampled(weights, rows, batch), "RepeatedInput", TITLE_OF_FEW) == []
