"""Weights that make up for rare classes, and those that are turned round."""

import pytest

from smdebug_default_rules.loss.turned_weights import TITLE
from tests.smdebug_default_rules.made_runs import TERM
from tests.smdebug_default_rules.made_steps import Steps

BINARY = {"criterion": "binary cross entropy with logits", "rows": 200, "target_rows": 200, "columns": 1}


def positives(*counts, weights, labels=200, steps=10):
    """A run with so many positive labels at each step, for each weight."""
    term = {**BINARY, "weights": [*weights], "positives": [*counts], "labels": labels}
    return weighted(term, steps)


def classes(*counts, weights, steps=10, **changes):
    """A run with so many labels of each class at each step."""
    listed = [[number, count] for number, count in enumerate(counts) if count]
    term = {**TERM, "classes": len(weights), "counts": listed, "weights": [*weights], **changes}
    return weighted(term, steps)


def weighted(term, steps):
    run = Steps()
    run.facts["loss"] = {"factor": 1.0, "terms": [term]}
    return run.write(steps=steps)


def found(run):
    return [(step, finding.since) for step, finding in run.evaluate("LossInput") if finding.title == TITLE]


def test_the_odds_as_the_weight_of_positives_are_found():
    run = positives(10, weights=[10 / 190])
    assert found(run)[0] == (2, 0)
    (_, finding), *_ = run.evaluate("LossInput")
    assert (finding.cause, finding.value, finding.threshold) == ("loss input", 10 / 190, 19.0)


def test_the_odds_of_labels_that_are_mostly_positive_are_found():
    assert found(positives(180, weights=[9.0]))


def test_the_odds_of_several_kinds_of_labels_are_found_where_one_is_rare():
    run = positives(10, 60, 0, weights=[10 / 190, 60 / 140, 1e-6])
    assert found(run)
    assert "of column 0" in run.evaluate("LossInput")[-1][1].message


@pytest.mark.parametrize("scale", [1.0, 1 / 320])
def test_weights_that_grow_with_the_counts_of_classes_are_found(scale):
    assert found(classes(200, 100, 20, 0, weights=[200 * scale, 100 * scale, 20 * scale, 1e-9]))[0] == (1, 0)


@pytest.mark.parametrize(
    "healthy",
    [
        {"counts": [10], "weights": [19.0]},
        {"counts": [10], "weights": [19**0.5]},
        {"counts": [10], "weights": [1.0]},
        {"counts": [10], "weights": [0.2]},  # found with few mistakes rather than often
        {"counts": [60], "weights": [60 / 140]},  # which are not so rare
        {"counts": [100], "weights": [1.0]},  # drawn as often as the others
        {"counts": [10, 60], "weights": [10 / 190, 140 / 60]},
        {"counts": [0], "weights": [1e-4]},
        {"counts": [200], "weights": [1e4]},
    ],
)
def test_other_weights_of_positives_pass(healthy):
    assert found(positives(*healthy["counts"], weights=healthy["weights"])) == []


@pytest.mark.parametrize(
    "weights",
    [
        [1 / 200, 1 / 100, 1 / 20],
        [200**-0.5, 100**-0.5, 20**-0.5],
        [1.0, 1.0, 1.0],
        [1.0, 1.0, 0.0],  # left out on purpose
        [0.2, 1.0, 5.0],
        [1.0, 2.0, 0.1],
    ],
)
def test_other_weights_of_classes_pass(weights):
    assert found(classes(200, 100, 20, weights=weights)) == []


def test_classes_that_are_nearly_as_frequent_pass():
    assert found(classes(100, 60, 40, weights=[100, 60, 40])) == []


def test_few_labels_are_too_few():
    assert found(positives(2, weights=[2 / 198])) == []
    assert found(positives(2, weights=[2 / 198], steps=14))


def test_other_weights_begin_anew():
    run = positives(10, weights=[10 / 190], steps=2)
    run.facts["loss"]["terms"] = [{**BINARY, "weights": [19.0], "positives": [10], "labels": 200}]
    assert found(run.write(steps=9)) == []


def test_labels_of_more_classes_than_weights_are_not_compared():
    assert found(classes(200, 100, 20, weights=[200, 100])) == []
    assert found(classes(200, 100, 20, weights=[200, 100, 20], criterion="another")) == []
