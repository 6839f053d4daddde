"""The hook for TensorFlow, in loops with a tape."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from smdebug.exceptions import SMDebugTypeError
from tests.frameworks.tensorflow.training import (
    INPUTS,
    LABELS,
    hook_in,
    layers,
    same,
    small_model,
    trial_of,
)

pytestmark = pytest.mark.usefixtures("same_beginning")


def loop(hook, model, steps=3, tape=tf.GradientTape):
    optimizer = hook.wrap_optimizer(keras.optimizers.Adam())
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    held = []
    for _ in range(steps):
        with hook.wrap_tape(tape()) as watched:
            outputs = model(INPUTS, training=True)
            loss = loss_of(LABELS, outputs)
        gradients = watched.gradient(loss, model.trainable_variables)
        held.append((float(loss), gradients[0].numpy(), model.get_weights()[0]))
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        hook.save_tape_logs(INPUTS, outputs)
    return held


def test_a_tape_tells_of_losses_gradients_weights_and_layers(run):
    model = keras.Sequential([keras.layers.Input((4,)), *layers()])
    with hook_in(run) as hook:
        hook.register_model(model)
        held = loop(hook, model)
    trial = trial_of(run)
    for step, (loss, gradient, weight) in enumerate(held):
        assert trial.tensor("loss").value(step) == np.float32(loss)
        np.testing.assert_array_equal(trial.tensor("gradients/dense/kernelGrad").value(step), gradient)
        np.testing.assert_array_equal(trial.tensor("weights/dense/kernel:0").value(step), weight)
    assert {"dense/outputs", "inputs", "predictions"} <= set(trial.tensor_names(step=2))
    assert "adam/learning_rate:0" in trial.tensor_names(step=1, collection="optimizer_variables")
    assert trial.tensor_names(collection="losses") == ["loss"]


def test_layers_inside_a_function_are_reported_as_unseen(run, caplog):
    model = small_model()
    forward = tf.function(lambda inputs: model(inputs))
    with hook_in(run) as hook:
        hook.logger.addHandler(caplog.handler)
        hook.register_model(model)
        for _ in range(2):
            with hook.wrap_tape(tf.GradientTape()) as tape:
                loss = tf.reduce_mean(forward(INPUTS) ** 2)
            tape.gradient(loss, model.trainable_variables)
        hook.logger.removeHandler(caplog.handler)
    (warning,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert warning.startswith("dense/inputs is not saved")
    assert trial_of(run).tensor("gradients/dense/kernelGrad").steps() == [0, 1]


def test_each_loss_that_a_persistent_tape_is_asked_about_is_saved(run):
    model = small_model()
    with hook_in(run) as hook:
        with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
            outputs = model(INPUTS)
            losses = [tf.reduce_mean(outputs**2), tf.reduce_sum(outputs)]
        gradients = [tape.gradient(loss, model.trainable_variables)[0].numpy() for loss in losses]
    trial = trial_of(run)
    (gradient,) = (n for n in trial.tensor_names() if n.endswith("dense/kernelGrad"))
    for number, end in enumerate(("", "_1")):
        assert trial.tensor(f"loss{end}").value(0) == float(losses[number])
        np.testing.assert_array_equal(trial.tensor(gradient + end).value(0), gradients[number])


def test_a_loop_has_the_same_results_with_and_without_the_hook(run, tmp_path):
    def trained(**settings):
        keras.backend.clear_session()
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((4,)), *layers()])
        with hook_in(tmp_path / str(len(settings)), **settings) as hook:
            hook.register_model(model)
            loop(hook, model)
        return model

    assert same(trained(), trained(save_all=False))


def test_a_tape_that_xla_compiles_is_reported_as_not_saved(run, caplog):
    hook = hook_in(run)
    variable = tf.Variable(2.0)

    @tf.function(jit_compile=True)
    def step():
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = variable * variable
        return tape.gradient(loss, variable)

    hook.logger.addHandler(caplog.handler)
    assert step() == 4
    hook.logger.removeHandler(caplog.handler)
    assert "tf.function" in caplog.text
    with pytest.raises(SMDebugTypeError, match="GradientTape"):
        hook.wrap_tape(3)
    with pytest.raises(SMDebugTypeError, match=r"keras\.Model"):
        hook.register_model(3)
    hook.close()
