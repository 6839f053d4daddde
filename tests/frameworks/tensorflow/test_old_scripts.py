"""Training scripts as people wrote them for the old library, with TensorFlow and Keras."""

import importlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import smdebug.tensorflow as smd
from smdebug.exceptions import LegacyKeras

EVERY_STEP = smd.SaveConfig(save_interval=1)
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.random((12, 4)).astype("float32")
TARGETS = INPUTS.sum(axis=1, keepdims=True)


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


@pytest.fixture(autouse=True)
def _the_same_beginning():
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)


def hook_in(run, **options):
    return smd.KerasHook(run, **{"save_config": EVERY_STEP, "save_all": True, **options})


def names_in(run, **selection):
    return set(smd.create_trial(run).tensor_names(**selection))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="subclassed")
        self.hidden = keras.layers.Dense(3, activation="relu", name="hidden")
        self.out = keras.layers.Dense(1, name="out")

    def call(self, inputs):
        return self.out(self.hidden(inputs))


def functional():
    inputs = keras.Input((4,), name="features")
    hidden = keras.layers.Dense(3, activation="relu", name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1, name="out")(hidden), name="functional")


# fit


@pytest.mark.parametrize("make", [functional, Subclassed])
def test_functional_and_subclassed_models_are_saved_by_fit(run, make):
    hook, model = hook_in(run), make()
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(INPUTS, TARGETS, batch_size=4, epochs=2, verbose=0, callbacks=[hook])
    hook.close()
    trial = smd.create_trial(run)
    assert trial.steps(mode=smd.modes.TRAIN) == list(range(6))
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert "mae" in trial.tensor_names(collection="metrics")
    layers = {f"{layer}/{side}" for layer in ("hidden", "out") for side in ("inputs", "outputs")}
    assert layers <= set(trial.tensor_names(step=5))
    gradients = {f"gradients/{n}/{k}Grad" for n in ("hidden", "out") for k in ("kernel", "bias")}
    assert set(trial.tensor_names(collection="gradients")) == gradients
    assert trial.tensor("hidden/outputs").value(0).shape == (4, 3)


def test_a_recurrent_model_is_trained_from_a_generator(run):
    def batches():
        while True:
            yield RANDOM.random((4, 5, 3)), RANDOM.random((4, 1))

    model = keras.Sequential(
        [
            keras.Input((5, 3)),
            keras.layers.LSTM(4, name="lstm"),
            keras.layers.Dense(1, name="out"),
        ]
    )
    hook = hook_in(run, include_collections=["weights", "gradients"], save_all=False)
    model.compile("adam", "mse")
    model.fit(batches(), steps_per_epoch=3, epochs=2, verbose=0, callbacks=[hook])
    hook.close()
    trial = smd.create_trial(run)
    assert trial.steps() == list(range(6))
    gradient = trial.tensor("gradients/lstm/lstm_cell/recurrent_kernelGrad")
    assert gradient.steps() == list(range(6))
    assert gradient.value(5).shape == (4, 16)


def test_reductions_and_shapes_are_saved_instead_of_values(run):
    reductions = smd.ReductionConfig(reductions=["min", "max", "mean"], abs_norms=["l2"], save_shape=True)
    hook, model = hook_in(run, reduction_config=reductions), functional()
    model.compile("sgd", "mse")
    model.fit(INPUTS, TARGETS, batch_size=12, verbose=0, callbacks=[hook])
    hook.close()
    trial = smd.create_trial(run)
    weight = trial.tensor("hidden/weights/hidden/kernel:0")
    held = model.get_layer("hidden").kernel.numpy()
    assert weight.shape(0) == (4, 3)
    assert weight.reduction_value(0, "max") == held.max()
    assert weight.reduction_value(0, "mean") == pytest.approx(held.mean(), rel=1e-5)
    assert weight.reduction_value(0, "l2", abs=True) == pytest.approx(np.linalg.norm(held))
    assert trial.tensor("loss").value(0).size == 1


def test_a_collection_is_added_and_prepared(run):
    hook, model = hook_in(run, save_all=False, include_collections=["mine"]), functional()
    hook.get_collection("mine").include("hidden/outputs")
    hook._prepare_collections_for_tf2()
    hook._prepare_collections()
    model.compile("sgd", "mse")
    model.fit(INPUTS, TARGETS, batch_size=12, verbose=0, callbacks=[hook])
    hook._cleanup()
    assert names_in(run, collection="mine") == {"hidden/outputs"}
    assert smd.create_trial(run).loaded_all_steps


# Loops


def test_a_loop_whose_forward_is_a_function_is_saved_by_its_tape(run):
    hook, model = hook_in(run), functional()
    optimizer = hook.wrap_optimizer(keras.optimizers.SGD(0.1))
    forward = tf.function(lambda inputs: model(inputs, training=True))
    hook.set_mode(smd.modes.TRAIN)
    held = []
    for _ in range(3):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((forward(INPUTS) - TARGETS) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        held.append((float(loss), gradients[0].numpy()))
    hook.close()
    trial = smd.create_trial(run)
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2]
    for step, (loss, gradient) in enumerate(held):
        assert trial.tensor("loss").value(step) == np.float32(loss)
        saved = trial.tensor("gradients/hidden/kernelGrad").value(step)
        np.testing.assert_array_equal(saved, gradient)


def test_a_loop_that_is_a_function_trains_as_without_the_hook(run):
    """Each step is saved, and nothing else changes."""

    def trained(wrap):
        keras.backend.clear_session()
        keras.utils.set_random_seed(0)
        model, optimizer = functional(), keras.optimizers.SGD(0.1)

        @tf.function
        def step(inputs, targets):
            with wrap(tf.GradientTape()) as tape:
                loss = tf.reduce_mean((model(inputs) - targets) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return [float(step(INPUTS, TARGETS)) for _ in range(3)]

    hook = hook_in(run)
    losses = trained(hook.wrap_tape)
    hook.close()
    assert losses == trained(lambda tape: tape)
    trial = smd.create_trial(run)
    assert [trial.tensor("loss").value(step).item() for step in trial.steps()] == losses
    assert {"gradients/hidden/kernelGrad", "weights/hidden/kernel:0"} <= names_in(run)


def test_sparse_gradients_of_an_embedding_are_saved_by_a_tape(run):
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int32"),
            keras.layers.Embedding(6, 2, name="words"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, name="out"),
        ]
    )
    words = np.array([[0, 1, 1], [4, 0, 1]])
    hook = hook_in(run)
    hook.register_model(model)
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean(model(words) ** 2)
    gradient = tape.gradient(loss, model.trainable_variables)[0]
    hook.close()
    assert isinstance(gradient, tf.IndexedSlices)
    saved = smd.create_trial(run).tensor("gradients/words/embeddingsGrad").value(0)
    np.testing.assert_array_equal(saved, tf.convert_to_tensor(gradient).numpy())
    assert saved.shape == (6, 2)
    assert not saved[[2, 3, 5]].any()


# Keras 2


@pytest.fixture
def tf_keras(tmp_path, monkeypatch):
    """A package of that name, as far as the hook needs to see."""
    package = tmp_path / "packages" / "tf_keras"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("class Model: pass\n")
    monkeypatch.syspath_prepend(package.parent)
    yield importlib.import_module("tf_keras")
    sys.modules.pop("tf_keras")


def test_with_legacy_keras_the_hook_is_refused_at_its_import(tf_keras, monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.delitem(sys.modules, "smdebug.tensorflow.keras")
    monkeypatch.delattr(smd, "KerasHook", raising=False)
    with pytest.raises(LegacyKeras, match="unset TF_USE_LEGACY_KERAS"):
        smd.KerasHook
    with pytest.raises(ImportError, match=r"smdebug\.Hook"):
        smd.get_hook("keras", create_if_not_exists=True)


def test_a_model_of_legacy_keras_is_refused(run, tf_keras):
    hook = hook_in(run)
    with pytest.raises(LegacyKeras):
        hook.set_model(tf_keras.Model())
    hook.close()
