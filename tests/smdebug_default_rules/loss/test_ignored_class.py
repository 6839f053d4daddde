"""A class that the criterion leaves out, and rows without a label that it leaves out on purpose."""

import pytest

from smdebug_default_rules.loss.ignored_class import LEAST_STEPS, TITLE
from tests.smdebug_default_rules.made_runs import TERM
from tests.smdebug_default_rules.made_steps import Steps

CLASSES, EACH = 5, 8


def left_out(
    ignored, share=None, steps=LEAST_STEPS, rows=None, apart=1, classes=CLASSES, unseen=(), **changes
):
    """A run whose classes have eight labels each at a step; of the ignored one there are `share`."""
    others = [number for number in range(classes) if number not in (ignored, *unseen)]
    counts = [[number, EACH * (apart if number == others[-1] else 1)] for number in others]
    labels = sum(count for _, count in counts)
    missing = EACH if share is None else share
    term = {**TERM, "classes": classes, "rows": labels + missing, "targets": labels, "counts": counts}
    term |= {"ignored": missing / (labels + missing), "of_a_layer": True, "ignored_class": ignored, **changes}
    run = Steps()
    run.facts["shapes"] = [[labels + missing if rows is None else rows, 8]]
    run.facts["loss"] = {
        "factor": 1.0,
        "terms": [{key: value for key, value in term.items() if value is not None}],
    }
    return run.write(steps=steps)


def found(run):
    return [(step, finding.since) for step, finding in run.evaluate("LossInput") if finding.title == TITLE]


@pytest.mark.parametrize("ignored", [0, 2, CLASSES - 1])
def test_a_class_that_is_left_out_is_found(ignored):
    assert found(left_out(ignored))[0] == (LEAST_STEPS - 1, 0)


def test_it_is_found_where_classes_are_about_as_common():
    assert found(left_out(0, share=9, apart=2))


@pytest.mark.parametrize(
    "healthy",
    [
        {"ignored_class": None},  # as -100 is
        {"ignored_class": CLASSES},  # no class that the model has
        {"share": 40},  # most rows have no label
        {"share": 1},  # few rows have none
        {"share": 0},
        {"apart": 3},  # of classes that differ, one says nothing
        {"steps": LEAST_STEPS - 1},
        {"rows": 8},  # labels of tokens
        {"of_a_layer": False},
    ],
)
def test_rows_without_a_label_pass(healthy):
    assert found(left_out(**{"ignored": 0, **healthy})) == []


def test_few_classes_are_not_judged():
    assert found(left_out(0, classes=4))
    assert found(left_out(0, classes=3)) == []


def test_classes_that_were_not_seen_yet_are_not_judged():
    assert found(left_out(0, unseen=[3])) == []
