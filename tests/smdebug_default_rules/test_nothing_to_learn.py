"""Trainings that cannot learn: empty inputs, frozen weights, and targets that have nothing to do with inputs.

The last ones cost as much as always predicting the same; and where inputs contain the targets, there is
nothing to learn either.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps


def test_inputs_that_are_all_zero_are_found(run):
    for _ in range(4):
        run.kinds["inputs"]["Net_input_0"][:] = 0
        run.facts["distinct_rows"] = 1
        run.write()
    found = run.evaluate("RepeatedInput")
    assert [(step, finding.since, finding.tensor) for step, finding in found] == [
        (2, 0, "Net_input_0"),
        (3, 0, "Net_input_0"),
    ]
    assert "All 256 values of Net_input_0 are 0" in found[0][1].message


def test_a_constant_input_may_be_wanted_where_nothing_is_compared(run):
    run.facts["loss"]["terms"] = []
    for _ in range(4):
        run.kinds["inputs"]["Net_input_0"][:] = 1
        run.write()
    assert run.evaluate("RepeatedInput") == []


def test_weights_that_all_start_at_zero_are_found(run):
    for values in run.kinds["parameters"].values():
        values[:] = 0
    found = run.write(steps=2).evaluate("InitialWeights")
    assert [finding.tensor for _, finding in found] == [
        "Net_0.weight",
        "Net_2.weight",
        "Net_4.weight",
    ]


def test_a_layer_may_start_at_zero(run):
    run.kinds["parameters"]["Net_4.weight"][:] = 0
    assert run.write().evaluate("InitialWeights") == []


def freeze_weights(run, drawn):
    run.lasting["frozen"] = [name for name in PARAMETERS if name.endswith("weight")]
    for name in run.lasting["frozen"]:
        if drawn:
            even = run.random.uniform(-0.25, 0.25, (16, 16))
            run.kinds["parameters"][name] = even.astype(np.float32)


def test_biases_alone_are_trained_of_weights_as_they_were_drawn(run):
    freeze_weights(run, drawn=True)
    found = run.write().evaluate("UnreachedParameters")
    assert {finding.tensor for _, finding in found} == {"Net_0.weight"}


def test_biases_alone_may_be_tuned_of_a_trained_model(run):
    freeze_weights(run, drawn=False)
    assert run.write(steps=3).evaluate("UnreachedParameters") == []


ROWS = 64
OF_CLASSES = {**TERM, "rows": ROWS, "classes": 3, "targets": ROWS, "reduction": "mean", "of_a_layer": True}
SQUARED = {
    "criterion": "mean squared error",
    "given": "",
    "rows": ROWS,
    "classes": 1,
    "reduction": "mean",
    "of_a_layer": True,
    "target_rows": ROWS,
    "columns": 1,
}


class Regression:
    """A training whose targets have a mean of 5 and a variance of 15, of which a share is explained."""

    def __init__(
        self,
        explained=0.0,
        *,
        count=330,
        every=10,
        factor=1.0,
        each=1.0,
        seed=0,
        begins=0,
        ends=math.inf,
        tails=math.inf,
        **term,
    ):
        random = np.random.default_rng(seed)
        self.steps = Steps()
        for step in range(count):
            drawn = random.standard_t(tails, ROWS) if tails < math.inf else random.normal(0, 1, ROWS)
            targets = 5 + math.sqrt(15) * drawn
            share = explained if begins <= step < ends else 0.0
            cost = float(np.mean((targets - 5) ** 2)) * (1 - share) + 30 * math.exp(-step / 8)
            self.steps.loss = cost * factor * each
            if step % every:
                self.steps.skip(self.steps.loss)
                continue
            means, variances = [float(targets.mean())], [float(targets.var())]
            known = {
                **SQUARED,
                "means": means,
                "variances": variances,
                "lowest": -9.0,
                "highest": 20.0,
                **term,
            }
            self.steps.facts["loss"] = {"factor": factor, "terms": [known], "value": self.steps.loss}
            self.steps.write()

    def found(self):
        return self.steps.evaluate("StuckLoss")


def test_a_regression_that_loses_what_it_had_learnt_is_told_since_when():
    findings = Regression(0.9, begins=40, ends=120, count=450).found()
    finding = findings[0][1]
    assert 112 <= finding.since <= 128  # a block of losses begins there
    assert finding.title == "The loss has risen to where it began"
    assert "it had fallen to 1." in finding.message


def test_a_second_training_is_judged_by_its_own_losses():
    steps = Steps()
    for number, losses in enumerate(
        ([2.3 * 0.98**step for step in range(120)], [6 * 0.9956**step for step in range(200)])
    ):
        steps.lasting["optimizers"][0]["number"] = number
        for loss in losses:
            steps.loss = loss
            steps.write()
    assert steps.evaluate("StuckLoss") == []


def test_the_factor_of_a_loss_is_no_fall():
    assert "has learnt nothing" in Regression(factor=0.01, count=450).found()[0][1].message
    assert "it had fallen to 1." in Regression(0.9, factor=0.01, begins=40, ends=120).found()[0][1].message


def test_a_regression_that_costs_as_much_as_the_mean_of_its_targets_has_learnt_nothing():
    (step, finding), *_ = Regression().found()
    assert (step, finding.cause, finding.since) == (300, "not learning", 0)
    assert finding.value == pytest.approx(15, rel=0.1)
    assert finding.threshold == pytest.approx(15, rel=0.1)
    assert "the variance of the targets: the model has learnt nothing from its inputs" in finding.message


def denoising(shapes, count=450):
    """A model of which the loss is still that of the mean of its targets, which have two columns."""
    random = np.random.default_rng(0)
    steps = Steps()
    steps.facts["shapes"] = shapes
    for _ in range(count):
        targets = random.normal(0, 1, (64, 2))
        steps.loss = float((targets**2).mean())
        known = {**SQUARED, "rows": 64, "target_rows": 64, "columns": 2, "lowest": -3.0, "highest": 3.0}
        known |= {"means": targets.mean(0).tolist(), "variances": targets.var(0).tolist()}
        steps.facts["loss"] = {"factor": 1.0, "terms": [known], "value": steps.loss}
        steps.write()
    return steps.evaluate("StuckLoss")


def test_a_denoiser_is_given_time_to_learn_how_its_data_are_shaped():
    assert denoising([[64, 2], [64]]) == []
    assert denoising([[64, 2], [64]], count=1600)
    assert denoising([[64, 2]])
    assert denoising([[64, 5], [64]])


@pytest.mark.parametrize(
    ("training", "found"),
    [
        ({"explained": 0.1}, False),  # a hard task
        ({"explained": 0.01, "each": 1.02}, True),
        ({"explained": -0.5}, True),  # worse than the constant
        ({"count": 299}, False),  # may be a plateau
        ({"count": 330, "every": 20}, False),  # nine steps to compare
        ({"factor": 0.25}, True),
        ({"reduction": "sum", "each": ROWS}, True),
        ({"reduction": "sum", "each": ROWS, "explained": 0.1}, False),
        ({"reduction": "none"}, False),
        ({"weighted": True}, False),
        ({"of_a_layer": False}, False),
        ({"criterion": "Huber"}, False),
        ({"target_rows": ROWS // 2}, False),
    ],
)
def test_only_a_loss_whose_constant_is_known_and_that_is_no_better_is_found(training, found):
    assert bool(Regression(**training).found()) == found


def test_a_plateau_that_ends_is_found_no_more():
    late = Regression(explained=0.5, begins=400, count=600).found()
    assert min(step for step, _ in late) >= 300
    assert max(step for step, _ in late) < 480


@pytest.mark.parametrize("seed", [5, 9])
def test_saved_targets_that_are_wider_than_the_others_show_no_gain(seed):
    assert Regression(tails=5.0, seed=seed, count=310).found()


def labelled(loss, counts, *, count=331, kept=OF_CLASSES, noise=0.01, **facts):
    """A training whose labels have these counts in each batch, and whose loss has this size."""
    steps, random = Steps(), np.random.default_rng(0)
    largest = max(counts, key=lambda pair: pair[1])
    for _ in range(count // 10):
        steps.loss = value = loss + random.normal(0, noise)
        steps.skip(*(loss + random.normal(0, noise, 9)))
        term = {
            **kept,
            "counts": counts,
            "classes_seen": len(counts),
            "largest_class": largest[0],
            "largest_share": largest[1] / ROWS,
        }
        steps.facts["loss"] = {"factor": 1.0, "terms": [term], "value": value, **facts}
        steps.write()
    return steps


SKEWED = [[0, 48], [1, 12], [2, 4]]
ENTROPY = -sum(count / ROWS * math.log(count / ROWS) for _, count in SKEWED)


@pytest.mark.parametrize(
    ("loss", "noise", "found"),
    [
        (ENTROPY, 0.01, True),
        (0.9 * ENTROPY, 0.01, False),
        (ENTROPY, 0.04, True),
        (0.985 * ENTROPY, 0.04, False),  # a slow start, which the saved losses alone do not show
    ],
)
def test_guessing_by_frequency_is_known_below_the_logarithm_of_the_classes(loss, noise, found):
    # It fell from ln 3, so that it is neither at chance nor where it began.
    steps = labelled(loss, SKEWED, noise=noise)
    for seen in steps.seen[:2]:
        seen.series("loss")[:, 3] += 0.4
    found_here = steps.evaluate("StuckLoss")
    assert bool(found_here) == found
    assert all("the entropy of the labels" in finding.message for _, finding in found_here)


@pytest.mark.parametrize(("expects", "found"), [("probabilities", True), (None, False)])
def test_softmax_before_a_criterion_is_no_obstacle_where_it_takes_probabilities(expects, found):
    kept = {**OF_CLASSES, "given": "softmax", **({"expects": expects} if expects else {})}
    steps = labelled(ENTROPY, SKEWED, kept=kept)
    for seen in steps.seen[:2]:
        seen.series("loss")[:, 3] += 0.4
    messages = [finding.message for _, finding in steps.evaluate("StuckLoss")]
    assert any("the entropy of the labels" in message for message in messages) == found


def test_labels_of_one_class_are_found_if_a_layer_has_others_to_choose():
    (step, finding), *_ = labelled(0.001, [[2, ROWS]]).evaluate("LabelBalance")
    assert (step, finding.cause) == (159, "imbalance")
    assert finding.message.startswith("All 1024 labels are of class 2")
    contrastive = {**OF_CLASSES, "of_a_layer": False}
    assert labelled(2.0, [[0, ROWS]], kept=contrastive).evaluate("LabelBalance") == []


YES = {**SQUARED, "criterion": "binary cross entropy with logits", "lowest": 1.0, "highest": 1.0}


@pytest.mark.parametrize(
    ("term", "optimizers", "passes", "found"),
    [
        ({"means": [1.0], "variances": [0.0]}, 1, 1, True),
        ({"means": [0.0], "variances": [0.0]}, 1, 1, True),
        ({"means": [0.5], "variances": [0.25]}, 1, 1, False),
        ({"means": [0.99], "variances": [0.0]}, 1, 1, False),  # smoothed, not yes and no
        ({"means": [1.0], "variances": [0.0]}, 2, 1, False),  # a generator and its critic
        ({"means": [1.0], "variances": [0.0]}, 1, 2, False),
    ],
)
def test_yes_or_no_labels_that_are_all_alike_are_found(term, optimizers, passes, found):
    steps = Steps()
    steps.lasting["optimizers"] *= optimizers
    steps.facts["backward_passes"] = passes
    for _ in range(20):
        steps.facts["loss"] = {"factor": 1.0, "terms": [{**YES, **term}], "value": 0.01}
        steps.skip(*[0.01] * 9).write()
    assert bool(steps.evaluate("LabelBalance")) == found


def revealed(by, loss=0.01, *, count=6, **kept):
    steps = labelled(loss, SKEWED, count=10 * count, kept={**OF_CLASSES, **kept}, revealed_by=by)
    return steps.evaluate("RevealedTargets")


@pytest.mark.parametrize(
    ("by", "text"),
    [
        ([0, "input"], "Each target is the token that the model is given at the same place"),
        ([0, "token before"], "Each target is the token before, which it is given"),
        ([0, 7], "Column 7 of the input is the target"),
    ],
)
def test_targets_that_the_model_is_given_are_found_with_their_place(by, text):
    (_, finding), *_ = revealed(by)
    assert finding.message.startswith(text)
    assert (finding.tensor, finding.cause, finding.since) == ("Net_input_0", "leaked label", 9)


def test_targets_are_revealed_only_by_enough_rows_that_are_copied():
    assert revealed(None) == []
    assert revealed([0, 7], count=4) == []
    assert revealed([0, 7], rows=30) == []
    assert revealed([0, "input"], loss=0.5) == []  # an autoencoder has to rebuild its tokens
    assert revealed([0, 7], loss=0.5)[0][1].tensor == "Net_input_0"
    assert revealed([1, 7])[0][1].tensor == "Net_input_1"
