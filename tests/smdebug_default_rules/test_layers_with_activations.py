"""Layers as Keras has them: the activation is part of the layer, and names are paths."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_default_rules.tensors import Modules

KERAS = Modules(
    "",
    {"hidden": "Dense", "block": "Functional", "block/inner": "Dense"},
    {},
    {"hidden": "relu"},
)


@pytest.fixture
def keras_run(run):
    """A run whose layers are two of Keras's: `hidden`, and `last` whose output are the predictions."""
    names = {f"{layer}/weights/{layer}/kernel:0": (16, 16) for layer in ("hidden", "last")}
    run.lasting["modules"] = [["hidden", "Dense", False], ["last", "Dense", False]]
    run.lasting["activations"] = {"hidden": "relu", "last": "softmax"}
    run.lasting["optimizers"] = [{"class": "Adam", "groups": [{"parameters": list(names), "others": 0}]}]
    refresh = run.refresh

    def as_in_keras():
        refresh()
        run.kinds["parameters"] = {name: run.normal(*of, std=0.3) for name, of in names.items()}
        run.kinds["gradients"] = {f"gradient/{name}": run.normal(*of, std=0.01) for name, of in names.items()}
        run.kinds["updates"] = {f"update/{name}": run.normal(*of, std=0.001) for name, of in names.items()}
        run.kinds["outputs"] = {
            "hidden/outputs": np.maximum(run.normal(32, 16), 0),
            "last/outputs": run.normal(32, 10),
            "predictions": run.normal(32, 10),
        }

    run.refresh = as_in_keras
    run.refresh()
    return run


@pytest.mark.parametrize(
    ("tensor", "layer"),
    [
        ("hidden/weights/hidden/kernel:0", "hidden"),
        ("block/weights/block/inner/kernel:0", "block/inner"),
        ("cell/weights/cell/lstm_cell/kernel:0", "cell"),
        ("Dense_0/kernel", "Dense_0"),
    ],
)
def test_a_parameter_belongs_to_the_layer_in_its_path(tensor, layer):
    assert KERAS.layer_of(tensor) == layer


def test_an_output_belongs_to_the_layer_in_its_path():
    assert KERAS.layer_of_output("hidden/outputs") == "hidden"
    assert KERAS.layer_of_output("block/inner/outputs_1") == "block/inner"
    assert KERAS.layer_of_output("output/Dense_0") == "Dense_0"
    assert Modules("Net", {}, {}).layer_of_output("fc1_output_0") == "fc1"


def test_a_dense_layer_that_rectifies_can_be_dead(keras_run):
    for _ in range(4):
        keras_run.kinds["outputs"]["hidden/outputs"][:] = 0
        keras_run.kinds["outputs"]["last/outputs"][:] = 0  # not a rectifier: it may be zero
        keras_run.write()
    found = keras_run.evaluate("DeadUnits")
    assert [(step, finding.tensor, finding.since) for step, finding in found] == [
        (2, "hidden/outputs", 0),
        (3, "hidden/outputs", 0),
    ]
    assert "layer hidden (Dense)" in found[0][1].message


@pytest.mark.parametrize(("kind", "expected"), [("Dense", ["hidden/outputs"]), ("LSTM", [])])
def test_a_hidden_layer_that_ends_with_tanh_can_be_saturated(keras_run, kind, expected):
    keras_run.lasting["activations"] = {"hidden": "tanh", "last": "sigmoid"}
    keras_run.lasting["modules"][0][1] = kind  # an LSTM multiplies what its tanh returns
    for _ in range(3):
        for name in ("hidden/outputs", "last/outputs"):
            outputs = keras_run.kinds["outputs"]
            outputs[name] = np.sign(outputs[name] + 1e-3)
        keras_run.write()
    assert [found.tensor for _, found in keras_run.evaluate("SaturatedUnits")] == expected


def test_a_constant_output_is_found_in_the_predictions(keras_run):
    for _ in range(3):
        keras_run.kinds["outputs"]["predictions"][:] = 0.5
        keras_run.write()
    ((_, found),) = keras_run.evaluate("ConstantOutput")
    assert found.tensor == "predictions"


def test_the_layer_that_returns_the_predictions_is_named_for_a_wrong_input_of_the_loss(keras_run):
    term = {**keras_run.facts["loss"]["terms"][0], "expects": "probabilities", "given": "logits"}
    keras_run.facts["loss"]["terms"] = [term]
    keras_run.write()
    ((_, found),) = keras_run.evaluate("LossInput")
    assert found.tensor == "last/outputs"


def test_gradients_of_keras_belong_to_their_parameters_by_a_fact(keras_run):
    names = list(keras_run.kinds["parameters"])
    own = {name: f"gradients/{name.partition('/')[0]}/kernelGrad" for name in names}
    keras_run.lasting["gradient_names"] = own
    keras_run.write()
    for _ in range(2):
        gradients = keras_run.kinds["gradients"]
        keras_run.kinds["gradients"] = {own[n]: gradients[f"gradient/{n}"] for n in names}
        keras_run.kinds["updates"][f"update/{names[0]}"][:] = 0
        keras_run.write()
    found = keras_run.evaluate("LostUpdates")
    assert [(step, finding.tensor) for step, finding in found] == [(1, names[0]), (2, names[0])]


def test_the_bounds_of_an_activation_do_not_hide_the_scale_of_its_input(keras_run):
    keras_run.lasting["activations"] = {"hidden": "tanh", "last": "linear"}
    for _ in range(2):
        keras_run.kinds["inputs"] = {"inputs": keras_run.normal(32, 16) + 20_000}
        keras_run.kinds["outputs"]["hidden/outputs"] = np.sign(keras_run.normal(32, 16))
        keras_run.write()
    assert [found.tensor for _, found in keras_run.evaluate("InputScale")] == ["inputs"] * 2


def test_the_last_axis_of_a_kernel_has_its_units(keras_run):
    wide = "hidden/weights/hidden/kernel:0"
    keras_run.kinds["parameters"][wide] = keras_run.normal(400, 4, std=1.0)  # a gain of 20
    keras_run.write()
    ((_, found),) = keras_run.evaluate("InitialWeights")
    assert found.tensor == wide
    assert found.value == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize(("others", "value", "expected"), [(1e-4, 1e-3, []), (1.0, 5.0, [12])])
def test_a_value_is_corrupt_if_it_has_grown_and_not_if_the_others_shrink(run, others, value, expected):
    name = "update/Net_2.weight"
    run.write(steps=12)
    run.kinds["updates"][name][:] *= others
    run.kinds["updates"][name][3, 3] = value  # updates were 1e-3 before
    run.write()
    assert [step for step, _ in run.evaluate("ElementCorruption")] == expected


@pytest.mark.parametrize("others", ["all", "one", "none"])
def test_a_value_that_stands_out_where_other_tensors_have_risen_is_not_corruption(run, others):
    """A step far too large kills most units: the update of what is left of a layer is a single value."""
    run.write(steps=12)
    for name, values in run.kinds["updates"].items():
        if others == "all" or (others == "one" and name == "update/Net_4.weight"):
            values *= 1000.0
    run.kinds["updates"]["update/Net_2.weight"][:] *= 1e-4
    run.kinds["updates"]["update/Net_2.weight"][3, 3] = 5.0
    found = run.write().evaluate("ElementCorruption")
    assert [finding.tensor for _, finding in found] == (["update/Net_2.weight"] if others == "none" else [])


def test_weights_that_have_grown_out_of_all_bounds_are_found(run):
    run.write()
    run.kinds["parameters"]["Net_2.weight"] *= 1000
    run.kinds["parameters"]["Net_2.bias"] *= 1000  # biases begin at zero, and may grow
    run.write()
    ((step, found),) = run.evaluate("NonFiniteValues")
    assert (step, found.tensor, found.cause) == (1, "Net_2.weight", "exploding")
    assert "1e+03 times" in found.message
