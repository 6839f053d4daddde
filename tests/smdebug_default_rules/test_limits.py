"""The limits of rules that judge facts, inputs and outputs: a run at each, and one beyond it.

It is long because each limit of each rule has its case in a table.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from smdebug import modes
from tests.smdebug_default_rules.made_runs import MODULES, TERM
from tests.smdebug_default_rules.made_steps import Steps


def story(*facts, mode=modes.TRAIN, before=None):
    """A run with these facts, step by step."""
    steps = Steps()
    for of_step in facts:
        if before is not None:
            before(steps)
        of_step = copy.deepcopy(of_step)
        steps.lasting |= {name: of_step.pop(name) for name in ("modules", "optimizers") if name in of_step}
        steps.facts |= of_step
        steps.write(of_step.get("mode", mode))
    return steps


def fires(steps, rule):
    return sorted({step for step, _ in steps.evaluate(rule)})


def sinces(steps, rule):
    return sorted({finding.since for _, finding in steps.evaluate(rule)})


def scaler(*scales, skipped=()):
    return story(
        *({"loss_scale": scale, "optimizer_steps": at not in skipped} for at, scale in enumerate(scales))
    )


@pytest.mark.parametrize(
    ("steps", "fired", "since"),
    [
        (lambda: scaler(8.0, 4.0, 1.9, 1.0), [2, 3], [1]),
        (lambda: scaler(8.0, 4.0, 2.0), [], []),
        (lambda: scaler(1.0, 1.0, 1.0), [], []),  # a scale that never fell
        (lambda: scaler(1.0, 1.9, 0.5), [2], [2]),
        (lambda: scaler(*[1000.0] * 7, skipped=range(7)), [5, 6], [5, 6]),
        (lambda: scaler(*[1024.0] * 9, skipped=range(9)), [], []),
        (lambda: scaler(*[1000.0] * 11, skipped=[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]), [], []),
        (lambda: scaler(2000.0, *[1000.0] * 7, skipped=range(2, 8)), [7], [1]),
        (lambda: scaler(8.0, None, 1.0), [2], [2]),
    ],
)
def test_a_loss_scale_collapses_below_two_or_below_a_thousand_without_a_step(steps, fired, since):
    assert (fires(steps(), "LossScale"), sinces(steps(), "LossScale")) == (fired, since)


def passes(*of_steps):
    loss = {"terms": [TERM]}
    return story(
        *(
            {"loss": {**loss, "factor": factor}, **more, "backward_passes": count}
            for count, factor, more in of_steps
        )
    )


FOUR = (4, 1.0, {})


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        ([FOUR] * 3, [1, 2]),
        ([(3, 1.0, {})] * 3, [1, 2]),
        ([(2, 1.0, {})] * 3, []),  # two losses of one step
        ([(4, -0.76, {})] * 2, [1]),
        ([(4, 0.75, {})] * 3, []),
        ([(4, 0.25, {})] * 3, []),
        ([FOUR, (8, 1.0, {}), FOUR, (8, 1.0, {})], []),  # of skipped steps
        ([FOUR, FOUR, (5, 1.0, {}), FOUR, FOUR], [1, 4]),
        ([(4, 1.0, {"optimizer_steps": False})] * 3, []),
        ([(4, 1.0, {"gradients_were_reset": False})] * 3, []),  # another rule's
        ([(4, 1.0, {"loss_scale": scale}) for scale in (8.0, 4.0, 2.0)], []),
        ([(4, 1.0, {"loss_scale": 8.0})] * 3, [1, 2]),
        ([(4, 1.0, {"optimizers": [{"class": "LBFGS"}]})] * 3, []),
        ([(4, 1.0, {"optimizers": [{"class": "Adam"}, {"class": "Adam"}]})] * 3, []),
        ([(4, 1.0, {"gradients_were_reset": None})] * 3, []),  # a closure
        ([(4, None, {})] * 3, []),
    ],
)
def test_micro_batches_are_added_up_if_the_loss_is_not_divided(steps, fired):
    assert fires(passes(*steps), "AccumulationScale") == fired


@pytest.mark.parametrize(
    ("facts", "fired"),
    [
        ([{"gradients_were_reset": was} for was in (False, False, True, False)], [0, 1, 3]),
        ([{"gradients_were_reset": False, "backward_passes": 0}], []),
        ([{"gradients_were_reset": None}], []),
    ],
)
def test_gradients_are_not_reset_if_a_backward_pass_added_to_them(facts, fired):
    assert fires(story(*facts), "GradientsNotReset") == fired
    assert sinces(story(*facts), "GradientsNotReset") == ([0, 3] if fired else [])


DROPOUT = [*MODULES[:3], ["Drop", "Dropout", True], *MODULES[3:]]
IN_EVALUATION = {"training": False, "gradients": False, "optimizer_steps": False}


@pytest.mark.parametrize(
    ("facts", "fired"),
    [
        ({"training": False}, True),
        ({"training": False, "modules": MODULES}, False),  # nothing depends on the mode
        ({"training": False, "optimizer_steps": False}, False),
        ({"training": True}, False),
        ({"training": True, "gradients": False, "optimizer_steps": False, "loss": None}, True),
        (
            {"training": True, "gradients": False, "optimizer_steps": False},
            False,
        ),  # a teacher: another is trained
        ({"training": True, "gradients": False, "optimizer_steps": False, "modules": MODULES}, False),
        ({"training": True, "gradients": None, "optimizer_steps": False}, False),
        ({"training": True, "gradients": False}, False),
        (IN_EVALUATION, False),
        ({**IN_EVALUATION, "other_mode": ["Drop"]}, True),
        ({**IN_EVALUATION, "other_mode": ["Drop"], "gradients": True}, False),
        ({**IN_EVALUATION, "other_mode": ["Drop"], "gradients": None}, False),
        ({"training": True, "other_mode": ["Drop"]}, False),  # some layers are frozen on purpose
        ({**IN_EVALUATION, "dropout_in_evaluation": 0.5}, True),
        ({**IN_EVALUATION, "dropout_in_evaluation": 0.0}, False),
        ({"training": True, "dropout_in_evaluation": 0.5}, False),
    ],
)
def test_modules_are_in_the_wrong_mode_if_the_step_shows_it(facts, fired):
    steps = story(*[{"modules": DROPOUT, **facts}] * 2)
    assert fires(steps, "ModuleModes") == ([0, 1] if fired else [])
    assert sinces(steps, "ModuleModes") == ([0] if fired else [])


def test_a_training_mode_without_a_loss_is_no_evaluation():
    steps = Steps()
    steps.lasting["modules"] = DROPOUT
    steps.facts |= {"training": True, "gradients": False, "optimizer_steps": False, "loss": None}
    steps.loss = None
    assert fires(steps.write(), "ModuleModes") == []
    assert fires(steps.skip(1.0).write(), "ModuleModes") == []  # a loss of another step


def compared(given, compared, output, terms=1):
    def before(steps):
        steps.kinds["outputs"]["Net_output_0"] = np.ones(output, np.float32)

    fact = {"shapes": [[given, 8]], "loss": {"terms": [{**TERM, "rows": compared}] * terms}}
    return story(*[fact] * 3, before=before)


@pytest.mark.parametrize(
    ("given", "rows", "output", "fired"),
    [
        (8, 1, (8, 10), True),
        (7, 1, (7, 10), False),
        (8, 1, (1, 10), True),
        (8, 1, (2, 10), False),  # a model that joins rows on purpose
        (8, 2, (8, 10), False),
        (8, 8, (8, 10), False),
        (32, 33, (32, 10), True),
        (32, 64, (32, 10), False),  # a token each
        (32, 33, (32, 10, 2), False),
        (32, 33, (31, 10), False),
        (32, 31, (32, 10), False),
    ],
)
def test_rows_are_lost_between_the_input_and_the_loss(given, rows, output, fired):
    steps = compared(given, rows, output)
    assert fires(steps, "BatchShape") == ([1, 2] if fired else [])
    assert sinces(steps, "BatchShape") == ([0] if fired else [])
    assert fires(compared(given, rows, output, terms=0), "BatchShape") == []


def test_rows_that_were_lost_once_are_the_last_batch():
    single = {"loss": {"terms": [{**TERM, "rows": 1}]}}
    all_rows = {"loss": {"terms": [{**TERM, "rows": 32}]}}
    assert fires(story(single, all_rows, single, all_rows, single), "BatchShape") == []
    assert sinces(story(single, all_rows, single, single, single), "BatchShape") == [2]


def criterion(*terms, broadcast=None):
    return story({"loss": {"terms": [{**TERM, **term} for term in terms], "broadcast": broadcast}})


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        (lambda: criterion({}), 0),
        (lambda: criterion({"given": "softmax"}), 1),
        (lambda: criterion({"normalised": {"axis": 0, "length": 32}}), 1),
        (lambda: criterion({"classes": 1}), 1),
        (lambda: criterion({"classes": 1, "targets": 0}), 0),
        (lambda: criterion({"classes": 1, "criterion": "mse"}), 0),
        (lambda: criterion({}, broadcast=[32, 32]), 1),
        (lambda: criterion({"expects": "probabilities", "given": "logits"}), 1),
        (lambda: criterion({"expects": "probabilities", "given": "softmax"}), 0),
        (lambda: criterion({"given": "softmax"}, {"given": "sigmoid"}, {"classes": 1}), 2),
        (lambda: story({"loss": {}}), 0),
    ],
)
def test_the_loss_gets_the_wrong_input_if_its_criterion_does_not_take_it(steps, fired):
    assert len(steps().evaluate("LossInput")) >= fired
    assert bool(steps().evaluate("LossInput")) is bool(fired)


def precision(declared, **dtypes):
    """Layers that compute in other types than float32."""

    def before(steps):
        for layer, dtype in dtypes.items():
            name = f"{layer.strip('_')}_output_0"
            kind = np.float16 if dtype != "absent" else np.float32
            steps.kinds["outputs"][name] = np.ones(0 if dtype == "absent" else (32, 16), kind)

    return story(*[{"autocast": declared}] * 2, before=before)


@pytest.mark.parametrize(
    ("steps", "layers"),
    [
        (lambda: precision("float16", _0="f", _2="f"), set()),  # the last may be float32
        (lambda: precision("float16", _0="f"), {"2_output_0"}),
        (lambda: precision("float16"), {"0_output_0", "2_output_0"}),
        (lambda: precision(None), set()),
        (lambda: precision(None, _0="f"), {"2_output_0"}),
        (lambda: precision(None, _4="f"), set()),
        (lambda: precision("float16", _0="f", _2="absent"), set()),
    ],
)
def test_layers_compute_in_the_declared_precision(steps, layers):
    found = steps().evaluate("ComputePrecision")
    assert {finding.tensor for _, finding in found} == layers
    assert {finding.since for _, finding in found} == ({0} if layers else set())


def test_a_layer_computes_in_another_precision_since_the_first_step_that_showed_it():
    steps = Steps()
    steps.skip(*[2.3] * 4)
    steps.facts["autocast"] = "float16"
    for _ in range(2):
        steps.kinds["outputs"]["0_output_0"] = np.ones((32, 16), np.float16)
        steps.write()
    assert sinces(steps, "ComputePrecision") == [4]


def labels(losses, share=0.99, **term):
    steps = Steps()
    skewed = {"classes": 2, "largest_class": 0, "largest_share": share}
    for at, loss in enumerate(losses):
        now = term | ({"largest_class": at % 2} if term.get("largest_class") == "both" else {})
        steps.facts["loss"] = {"terms": [{**TERM, **skewed, **now}]}
        steps.loss = loss
        steps.write()
    return fires(steps, "LabelBalance")


GUESSING = 0.056


@pytest.mark.parametrize(
    ("found", "fired"),
    [
        (lambda: labels([GUESSING] * 121), [119, 120]),
        (lambda: labels([GUESSING] * 119), []),
        (lambda: labels([GUESSING] * 121, targets=8), []),
        (lambda: labels([GUESSING] * 126, targets=8), [124, 125]),
        (lambda: labels([GUESSING] * 125, share=0.97), []),  # it is worse than guessing
        (lambda: labels([0.12] * 121, share=0.975), [119, 120]),
        (lambda: labels([0.135] * 121, share=0.969), []),
        (lambda: labels([0.7 * GUESSING * 0.99] * 125), []),  # it has learnt more
        (lambda: labels(np.geomspace(0.2, 0.045, 124)), []),  # it still learns
        (lambda: labels([GUESSING] * 125, largest_class="both"), []),
        (lambda: labels([GUESSING] * 125, targets=0), []),
    ],
)
def test_labels_are_imbalanced_if_the_model_only_guesses_them(found, fired):
    assert found() == fired


# Inputs and outputs


def inputs(*arrays, shapes=None, distinct=None, terms=(TERM,), modules=None, outputs=None):
    steps = Steps()
    for array in arrays:
        of_step = array if isinstance(array, dict) else {"Net_input_0": array}
        steps.kinds["inputs"] = of_step
        first = next(iter(of_step.values()))
        steps.facts["shapes"] = [list(first.shape)] if shapes is None else shapes
        steps.facts["distinct_rows"] = len(first) if distinct is None else distinct
        steps.facts["loss"] = {"terms": [copy.deepcopy(term) for term in terms]}
        if modules is not None:
            steps.lasting["modules"] = modules
        if outputs is not None:
            outputs(steps)
        steps.write()
    return steps


def drawn(rows=32, features=8, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, features)).astype(np.float32)


def batches(count=3, **of):
    return [drawn(seed=seed, **of) for seed in range(count)]


ONE_CLASS_MORE = {**TERM, "classes_seen": 4, "largest_share": 0.3}


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        (lambda: inputs(*[drawn()] * 3), [1, 2]),
        (lambda: inputs(*batches()), []),
        (lambda: inputs(drawn(), drawn(), *batches(2)), [1, 2]),
        (lambda: inputs(drawn(), drawn(seed=1), *[drawn()] * 3), []),  # it has changed once
        (lambda: inputs(*[drawn(8)] * 2), [1]),
        (lambda: inputs(*[drawn(4)] * 2), []),
        (lambda: inputs(*[drawn(256)] * 2), [1]),
        (lambda: inputs(*[drawn(512)] * 2), []),  # a whole data set
        (lambda: inputs(*[drawn(48)] * 2), []),
        (lambda: inputs(*[drawn(32, 4)] * 2), [1]),
        (lambda: inputs(*[drawn(32, 3)] * 2), []),
        (lambda: inputs(*[drawn()] * 2, terms=[]), []),
        (lambda: inputs(*[drawn()] * 2, terms=[{**TERM, "targets": 0}]), []),
        (lambda: inputs(*[drawn()] * 2, terms=[{**TERM, "largest_share": 0.1}]), []),  # made for it
        (lambda: inputs(*[drawn()] * 2, terms=[ONE_CLASS_MORE]), [1]),
        (lambda: inputs(*[drawn()] * 2, shapes=[[32, 8], [32, 8]]), []),
        (lambda: inputs(*batches(4), distinct=16), [2, 3]),
        (lambda: inputs(*batches(4), distinct=17), []),
        (lambda: inputs(*batches(4, rows=8), distinct=4), [2, 3]),
        (lambda: inputs(*batches(4, rows=7), distinct=3), []),
        (lambda: inputs(*batches(2), distinct=16), []),
        (lambda: inputs(*batches(2), np.zeros((32, 8), np.int64), *batches(2), distinct=16), []),
        (lambda: inputs(*(np.round(batch) for batch in batches(4)), distinct=16), []),  # few values
        (lambda: inputs(*[np.full((32, 8), 0.5 + at, np.float32) for at in range(4)]), [2, 3]),
        (lambda: inputs(*[np.full((8, 8), 0.5, np.float32)] * 3), [2]),
        (lambda: inputs(*[np.full((7, 8), 0.5, np.float32)] * 3), []),
        (lambda: inputs(*[np.full(32, 0.5, np.float32)] * 4), []),
        (lambda: inputs(*[np.full((32, 8), 0.5, np.float32)] * 4, terms=[]), []),
        (lambda: inputs(*[np.full((32, 8), 5)] * 4, terms=[]), []),
    ],
)
def test_inputs_are_repeated_if_they_look_like_drawn_batches(steps, fired):
    assert fires(steps(), "RepeatedInput") == fired


def first_layer(size, weight=0.1):
    def change(steps):
        steps.kinds["outputs"]["0_output_0"][:] = size
        steps.kinds["parameters"]["Net_0.weight"][:] = weight

    return change


NORMALISED = [["Net", "Net", False], ["0", "LayerNorm", False], *MODULES[2:]]


@pytest.mark.parametrize(
    ("scales", "how", "fired"),
    [
        ([101.0] * 3, {}, [0, 1, 2]),
        ([100.0] * 3, {}, []),
        ([101.0, 50.0, 101.0], {}, [0, 2]),
        ([50.0, 101.0, 101.0], {}, []),  # a batch unlike those before
        ([101.0] * 2, {"outputs": first_layer(200.0)}, [0, 1]),
        ([101.0] * 2, {"outputs": first_layer(1.0)}, []),  # the first layer scales
        ([100.5] * 2, {"outputs": first_layer(0.05 * 100.5 * 0.5 * 4 * 1.01, 0.5)}, [0, 1]),
        ([100.5] * 2, {"outputs": first_layer(0.05 * 100.5 * 0.5 * 4 * 0.99, 0.5)}, []),
        ([101.0] * 2, {"outputs": first_layer(200.0), "modules": NORMALISED}, []),
    ],
)
def test_inputs_are_not_scaled_if_the_first_layer_takes_them_as_they_are(scales, how, fired):
    how = {"outputs": first_layer(200.0), **how}
    steps = inputs(*[np.full((32, 8), scale, np.float32) for scale in scales], **how)
    assert fires(steps, "InputScale") == fired
    assert sinces(steps, "InputScale") == fired[:1]


@pytest.mark.parametrize(("share", "fired"), [(1.01, [0]), (0.99, [])])
def test_a_first_layer_of_one_unit_has_its_whole_size_as_fan_in(share, fired):
    def change(steps):
        steps.kinds["parameters"]["Net_0.weight"] = np.full((1, 16), 0.5, np.float32)
        steps.kinds["outputs"]["0_output_0"] = np.full((32, 1), 0.05 * 200 * 0.5 * 4 * share, np.float32)

    assert fires(inputs(np.full((32, 16), 200.0, np.float32), outputs=change), "InputScale") == fired


def test_inputs_of_one_axis_or_of_whole_numbers_have_no_scale():
    loud = first_layer(200.0)
    assert fires(inputs(np.full(32, 500.0, np.float32), outputs=loud), "InputScale") == []
    assert fires(inputs(np.full((32, 8), 500), outputs=loud), "InputScale") == []


def tokens(padding, length=1000, padded_with=0, ids=50, mask=False):
    sequence = np.full(length, padded_with)
    sequence[: round(length * (1 - padding))] = np.arange(round(length * (1 - padding))) % ids + 1
    found = {"Net_input_0": sequence.reshape(-1, 4)}
    return {**found, "mask": np.ones((length // 4, 4), np.int64)} if mask else found


@pytest.mark.parametrize(
    ("of_step", "fired"),
    [
        (tokens(0.8), True),
        (tokens(0.79), False),
        (tokens(0.9, mask=True), False),
        (tokens(0.9, 256), True),
        (tokens(0.9, 252), False),
        (tokens(0.9, ids=6), True),
        (tokens(0.9, ids=5), False),
        (tokens(0.9, padded_with=1), True),
        (tokens(0.7, padded_with=1), False),
        ({"Net_input_0": np.zeros((64, 4, 4), np.int64)}, False),
        ({"Net_input_0": np.zeros((64, 8), np.float32)}, False),
    ],
)
def test_inputs_are_padding_if_four_fifths_of_many_ids_are_one(of_step, fired):
    steps = inputs(of_step, of_step, tokens(0.1), of_step)
    assert fires(steps, "InputPadding") == ([0, 1, 3] if fired else [])
    assert sinces(steps, "InputPadding") == ([0, 3] if fired else [])
