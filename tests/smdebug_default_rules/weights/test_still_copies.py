"""Copies of an untrained model that give the targets and never change: for long enough, of known losses."""

import numpy as np
import pytest

from smdebug_default_rules.catalog import CATALOG
from smdebug_default_rules.weights import still_copies
from tests.smdebug_default_rules.made_runs import PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps

SQUARES = {**TERM, "criterion": "mean squared error"}
VALUES = {"factor": 1.0, "terms": [SQUARES], "value": 0.5}
CODES = {"factor": 1.0, "terms": [], "embedding": {"rows": 32, "columns": 16, "alignment": 0.2}}


class Copied(Steps):
    """A run of an untrained model, of which a copy gives the targets; a test changes it."""

    def __init__(self, loss=VALUES, biases=0.0):
        self.biases = biases
        super().__init__()
        self.facts["loss"] = loss
        self.facts["copied_model"] = {"model": "Net", "of": "Net_0.weight", "is_same": True}

    def refresh(self):
        super().refresh()
        for name in PARAMETERS:
            if name.endswith("bias"):
                self.kinds["parameters"][name][:] = self.biases


def copied(loss=VALUES, apart=20_000, steps=10, **changes):
    """A run of so many saved steps, the last so far from the first."""
    run = Copied(loss, **changes).write(steps=steps - 1)
    run.step = apart
    return run.write()


def found(run):
    return [step for step, at in run.evaluate("UnreachedParameters") if at.title == still_copies.TITLE]


def at_end(run):
    rule = CATALOG["UnreachedParameters"].load()(None)
    for seen in run.seen:
        rule.observed = lambda step, seen=seen: seen
        rule.invoke_at_step(seen.step)
    rule.invoke_at_end(run.seen[-1].step)
    return [finding for finding in rule.findings if finding.title == still_copies.TITLE]


@pytest.mark.parametrize(
    ("loss", "apart", "count"),
    [
        (VALUES, 20_000, 1),
        (VALUES, 19_999, 0),
        (CODES, 1000, 1),
        (CODES, 999, 0),
        ({"factor": -1.0, "terms": [], "soft_targets": True}, 1000, 1),
    ],
)
def test_a_copy_is_found_while_the_run_goes_on(loss, apart, count):
    assert len(found(copied(loss, apart))) == count


@pytest.mark.parametrize(
    ("loss", "apart", "steps", "count"),
    [
        (VALUES, 500, 10, 1),
        (VALUES, 499, 10, 0),
        (VALUES, 500, 9, 0),
        (CODES, 200, 10, 1),
        (CODES, 199, 10, 0),
    ],
)
def test_a_copy_is_found_at_the_end_of_a_run(loss, apart, steps, count):
    assert len(at_end(copied(loss, apart, steps))) == count


@pytest.mark.parametrize(
    ("loss", "is_found"),
    [
        ({**VALUES, "terms": [SQUARES, TERM]}, True),
        ({"factor": 1.0, "terms": [SQUARES, SQUARES]}, True),
        ({"factor": 1.0, "terms": [SQUARES]}, False),  # beside what is not known, such as a policy's part
        ({"factor": 1.0, "terms": []}, False),  # such as the logarithms of a preference's probabilities
        ({"factor": 1.0, "terms": [TERM], "value": 2.3}, False),
        ({"factor": 1.0, "terms": [{**TERM, "rows": 32, "classes": 32, "classes_seen": 32}]}, True),
    ],
)
def test_the_loss_compares_values_or_embeddings(loss, is_found):
    assert bool(found(copied(loss))) == is_found


def test_a_copy_that_follows_late_passes():
    run = Copied().write(steps=12)
    run.step = 19_000
    run.facts["copied_model"]["is_same"] = False
    run.write()
    del run.facts["copied_model"]
    run.step = 40_000
    assert found(run.write(steps=12)) == at_end(run) == []


def test_another_copy_is_counted_by_itself():
    run = Copied().write(steps=9)
    run.step = 20_000
    run.facts["copied_model"] = {**run.facts["copied_model"], "of": "Net_2.weight"}
    assert found(run.write()) == []


def test_a_copy_of_weights_that_were_trained_is_a_teacher_that_stays():
    assert found(copied(biases=np.linspace(-1, 1, 1))) != []  # equal ones
    run = copied()
    run.seen = run.seen[:0]
    trained = Steps()
    trained.facts |= run.facts
    trained.write(steps=9)
    trained.step = 20_000
    assert found(trained.write()) == []


@pytest.mark.parametrize(("largest", "is_found"), [(1.0, True), (1.1, False)])
def test_biases_drawn_as_the_weights_beside_them_are_of_an_untrained_model(largest, is_found):
    random = np.random.default_rng(0)

    class Drawn(Copied):
        def refresh(self):
            super().refresh()
            for name in PARAMETERS:
                values = self.kinds["parameters"][name]
                if name.endswith("weight"):
                    self.bound = values.shape[1] ** -0.5
                    values[:] = random.uniform(-self.bound, self.bound, values.shape)
                else:
                    values[:] = random.uniform(-self.bound, self.bound, values.shape)
                    values[0] = largest * self.bound

    run = Drawn().write(steps=9)
    run.step = 20_000
    assert bool(found(run.write())) == is_found


def test_nothing_is_said_while_the_trained_model_stays_itself():
    run = Copied()
    for _ in range(10):
        for values in run.kinds["updates"].values():
            values[:] = 0
        run.write()
        run.step += 2500
    assert found(run) == []


def evaluated(*evaluations, apart=still_copies.LEAST_BETWEEN, biases=0.0, others=("Net_0.weight",)):
    """A run in which a copy was evaluated so often by the first and the last of some saved steps."""
    run = Copied(biases=biases)
    run.facts.pop("copied_model")
    for number, count in enumerate(evaluations):
        run.step = number * apart // (len(evaluations) - 1)
        of = others[number % len(others)]
        run.facts["evaluated_copy"] = {"model": "Net", "of": of, "evaluations": count}
        run.write()
        run.facts.pop("evaluated_copy")
    return run


def found_evaluated(run):
    title = still_copies.TITLE_OF_EVALUATED
    return [
        (step, at.since, at.tensor) for step, at in run.evaluate("UnreachedParameters") if at.title == title
    ]


def test_a_copy_that_is_evaluated_and_never_changes_is_found():
    assert found_evaluated(evaluated(1, 2, 3)) == [(100, 0, "Net_0.weight")]


@pytest.mark.parametrize(
    "healthy",
    [
        evaluated(1, 2),
        evaluated(1, 2, 3, apart=still_copies.LEAST_BETWEEN - 1),
        evaluated(
            1, 2, 3, biases=np.linspace(-1, 1, 16)
        ),  # the model was trained before, and its copy with it
        evaluated(1, 2, 3, others=("Net_0.weight", "Net_2.weight")),
    ],
)
def test_a_copy_that_may_be_there_to_compare_with_passes(healthy):
    assert found_evaluated(healthy) == []
