"""What a Keras hook observes of a training when it gets only a place."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import smdebug.tensorflow as smd
from smdebug.trials.observations.whole_run import ObservationsUnavailable
from tests.frameworks.tensorflow.training import EVERY_STEP, compiled, same, trial_of

pytestmark = pytest.mark.usefixtures("same_beginning")

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.random((120, 8, 8, 1)).astype("float32")
LABELS = (INPUTS.mean(axis=(1, 2, 3)) > 0.5).astype(int)
LAYERS = {
    "dense": lambda: [
        keras.layers.Flatten(name="flat"),
        keras.layers.Dense(5, activation="relu", name="dense"),
        keras.layers.Dropout(0.2, name="dropout"),
    ],
    "convolutional": lambda: [
        keras.layers.Conv2D(4, 3, name="conv"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.ReLU(name="relu"),
        keras.layers.GlobalAveragePooling2D(name="pool"),
    ],
    "recurrent": lambda: [
        keras.layers.Reshape((8, 8), name="rows"),
        keras.layers.LSTM(6, dropout=0.1, name="lstm"),
        keras.layers.LayerNormalization(name="norm"),
    ],
}


def model_of(kind="dense", optimizer="adam", **settings):
    layers = [keras.Input((8, 8, 1)), *LAYERS[kind](), keras.layers.Dense(2, name="out")]
    return compiled(keras.Sequential(layers), optimizer, **settings)


def fit(model, *callbacks, epochs=2, **more):
    settings = {
        "batch_size": 5,
        "verbose": 0,
        "validation_data": (INPUTS[:20], LABELS[:20]),
        **more,
    }
    model.fit(INPUTS, LABELS, epochs=epochs, callbacks=list(callbacks), **settings)
    return model


def watched(run, *args, epochs=2, **settings):
    with smd.KerasHook(str(run)) as hook:
        fit(model_of(*args, **settings), hook, epochs=epochs)
    return trial_of(run)


@pytest.mark.parametrize("compiling", [{}, {"jit_compile": False}, {"run_eagerly": True}])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_watched_training_is_the_same_to_the_last_bit(run, kind, compiling):
    epochs = 1 if compiling.get("run_eagerly") else 2  # a batch takes ten times as long
    alone = fit(model_of(kind, **compiling), epochs=epochs)
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    with smd.KerasHook(str(run)) as hook:
        seen = fit(model_of(kind, **compiling), hook, epochs=epochs)
    assert same(seen, alone)
    assert trial_of(run).statistics(0).of("gradients").names


def test_the_loss_of_every_batch_is_kept_and_not_the_mean_that_keras_logs(run):
    class Spike(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 17:
                self.weights = self.model.get_weights()
                self.model.set_weights([100 * weight for weight in self.weights])

        def on_train_batch_end(self, batch, logs=None):
            if batch == 17:
                self.model.set_weights(self.weights)

    with smd.KerasHook(str(run)) as hook:
        fit(model_of(), hook, Spike(), epochs=1)
    trial = trial_of(run)
    loss = trial.series("loss").of(smd.modes.TRAIN)
    assert loss.mode_steps.tolist() == list(range(24))
    assert loss.values.argmax() == 17
    assert loss.values[17] > 3 * np.delete(loss.values, 17).max()
    assert trial.tensor("loss").value(10, smd.modes.TRAIN) == np.float32(loss.values[10])
    assert "loss_is_mean_of_epoch" not in trial.facts(10, smd.modes.TRAIN)


def test_losses_of_batches_average_to_the_loss_of_the_epoch(run):
    with smd.KerasHook(str(run)) as hook:
        history = model_of().fit(INPUTS, LABELS, batch_size=10, epochs=2, verbose=0, callbacks=[hook])
    losses = trial_of(run).series("loss").values.reshape(2, 12)
    np.testing.assert_allclose(losses.mean(axis=1), history.history["loss"], rtol=1e-5)


def test_metrics_learning_rates_and_totals_of_validation_are_series(run):
    class Decay(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.1 / (1 + epoch)

    with smd.KerasHook(str(run)) as hook:
        fit(model_of(optimizer=keras.optimizers.SGD(0.1)), hook, Decay())
    trial = trial_of(run)
    assert len(trial.series("accuracy").of(smd.modes.TRAIN)) == 48
    assert len(trial.series("loss").of(smd.modes.EVAL)) == 8
    assert len(trial.series("val_loss")) == len(trial.series("val_accuracy")) == 2
    rates = trial.series("learning_rate/0/0")
    values = dict(zip(rates.mode_steps.tolist(), rates.values, strict=True))
    assert values[23 - 3] == pytest.approx(0.1)
    assert values[24] == pytest.approx(0.05)
    assert trial.tensor("val_loss").values(smd.modes.EVAL)


def test_of_each_validation_the_first_batch_is_measured(run):
    trial = watched(run)
    measured = trial.observations.steps(smd.modes.EVAL, "parameters")
    assert measured == [0, 4]
    assert set(trial.statistics(0, smd.modes.EVAL).kinds) == {"parameters", "inputs", "outputs"}
    assert trial.facts(0, smd.modes.EVAL)["training"] is False


def test_parameters_gradients_updates_the_batch_and_outputs_are_measured(run):
    trial = watched(run, "convolutional", keras.optimizers.SGD(0.5))
    statistics = trial.statistics(10, smd.modes.TRAIN)
    assert set(statistics.kinds) == {"parameters", "gradients", "updates", "inputs", "outputs"}
    assert statistics.of("inputs").names == ["inputs", "labels"]
    assert statistics.of("outputs").names == [
        "conv/outputs",
        "norm/outputs",
        "relu/outputs",
        "pool/outputs",
        "out/outputs",
        "predictions",
    ]
    kernel = "out/weights/out/kernel:0"
    gradient = trial.facts(10, smd.modes.TRAIN)["gradient_names"][kernel]
    assert statistics.row(f"update/{kernel}")["rms"] == pytest.approx(
        0.5 * statistics.row(gradient)["rms"], rel=1e-4
    )
    assert statistics.row("relu/outputs")["min"] >= 0
    assert "update/norm/weights/norm/moving_mean:0" not in statistics


def test_parameters_are_measured_before_the_step_changes_them(run):
    model = model_of()
    first = model.get_weights()[0]
    with smd.KerasHook(str(run)) as hook:
        fit(model, hook)
    row = trial_of(run).statistics(0).row("dense/weights/dense/kernel:0")
    assert row["mean"] == pytest.approx(first.mean(), rel=1e-5)


def test_facts_tell_layers_the_optimizer_the_batch_and_the_loss(run):
    facts = watched(run, "dense").facts(10, smd.modes.TRAIN)
    assert facts["modules"] == [
        ["flat", "Flatten", False],
        ["dense", "Dense", False],
        ["dropout", "Dropout", True],
        ["out", "Dense", False],
    ]
    assert facts["activations"] == {"dense": "relu", "out": "linear"}
    assert facts["training"] is facts["optimizer_steps"] is True
    assert facts["shapes"] == [[5, 8, 8, 1]]
    assert facts["distinct_rows"] == 5
    (optimizer,) = facts["optimizers"]
    assert optimizer["class"] == "Adam"
    assert len(optimizer["groups"][0]["parameters"]) == 4
    (term,) = facts["loss"]["terms"]
    assert (term["criterion"], term["expects"], term["given"]) == ("cross entropy", "logits", "")
    assert (term["rows"], term["classes"], term["targets"]) == (5, 2, 5)


def test_frozen_layers_and_rows_that_are_the_same_are_noticed(run):
    model = model_of()
    model.get_layer("dense").trainable = False
    compiled(model)
    with smd.KerasHook(str(run)) as hook:
        model.fit(INPUTS[:1].repeat(20, 0), LABELS[:20], 10, verbose=0, callbacks=[hook])
    trial = trial_of(run)
    facts = trial.facts(0)
    assert facts["frozen"] == ["dense/weights/dense/kernel:0", "dense/weights/dense/bias:0"]
    assert facts["distinct_rows"] == 1
    assert trial.statistics(0).of("updates").names == [
        "update/out/weights/out/kernel:0",
        "update/out/weights/out/bias:0",
    ]


@pytest.mark.parametrize(
    ("loss", "labels", "expected"),
    [
        (
            "sparse_categorical_crossentropy",
            LABELS,
            ("cross entropy", "probabilities", "logits", 2),
        ),
        (
            keras.losses.CategoricalCrossentropy(from_logits=True),
            np.eye(2)[LABELS],
            ("cross entropy", "logits", "", 2),
        ),
        ("mse", LABELS[:, None].repeat(2, 1) + 0.5, ("mean squared error", None, "", 2)),
    ],
)
def test_a_loss_says_whether_it_takes_probabilities(run, loss, labels, expected):
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("sgd", loss)
    with smd.KerasHook(str(run)) as hook:
        model.fit(INPUTS, labels, batch_size=30, verbose=0, callbacks=[hook])
    (term,) = trial_of(run).facts(0)["loss"]["terms"]
    assert (term["criterion"], term.get("expects"), term["given"], term["classes"]) == expected
    assert ("targets" in term) is (loss != "mse")


def test_a_train_step_of_its_own_is_observed(run):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.out = keras.layers.Dense(2, name="out")
            self.mean = keras.metrics.Mean(name="my_loss")

        def call(self, inputs):
            return self.out(keras.ops.reshape(inputs, (-1, 64)))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True)[:, 0] - tf.cast(y, tf.float32)) ** 2)
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
            self.mean.update_state(loss)
            return {"my_loss": self.mean.result()}

    model = Own()
    model.compile("sgd")
    with smd.KerasHook(str(run)) as hook:
        fit(model, hook, validation_data=None)
    trial = trial_of(run)
    assert len(trial.series("my_loss")) == 48
    assert trial.tensor_names(collection="losses") == ["my_loss"]
    assert trial.statistics(0).of("gradients").names


def test_several_steps_in_one_call_have_the_mean_that_keras_logs(run):
    with smd.KerasHook(str(run)) as hook:
        fit(model_of(steps_per_execution=2), hook)
    trial = trial_of(run)
    assert len(trial.series("loss").of(smd.modes.TRAIN)) == 24
    assert trial.facts(0)["loss_is_mean_of_epoch"] is True
    assert {"parameters", "updates"} <= set(trial.statistics(0).kinds)


def test_predictions_are_measured_at_the_first_batch_of_each_call(run):
    model = model_of()
    with smd.KerasHook(str(run)) as hook:
        fit(model, hook, epochs=1)
        model.predict(INPUTS[:20], batch_size=5, verbose=0, callbacks=[hook])
    trial = trial_of(run)
    assert trial.steps(smd.modes.PREDICT) == [0]
    assert "predictions" in trial.statistics(0, smd.modes.PREDICT)


def tape_loop(model, optimizer, hook=None, steps=25, in_graph=False):
    model.build((None, 8, 8, 1)) if not model.built else None

    def step(x, y):
        tape = tf.GradientTape()
        with tape if hook is None else hook.wrap_tape(tape):
            loss = tf.reduce_mean((model(x, training=True)[:, 0] - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    optimizer.build(model.trainable_variables)
    step = tf.function(step) if in_graph else step
    for number in range(steps):
        rows = slice(4 * number, 4 * number + 4)
        step(tf.constant(INPUTS[rows]), tf.constant(LABELS[rows], tf.float32))
    return model


@pytest.mark.parametrize("in_graph", [False, True])
def test_a_loop_with_a_tape_is_observed_and_gives_the_same_bits(run, in_graph):
    alone = tape_loop(model_of(), keras.optimizers.SGD(0.1), in_graph=in_graph)
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    model, optimizer = model_of(), keras.optimizers.SGD(0.1)
    with smd.KerasHook(str(run)) as hook:
        hook.register_model(model)
        hook.wrap_optimizer(optimizer)
        tape_loop(model, optimizer, hook, in_graph=in_graph)
    assert same(alone, model)
    trial = trial_of(run)
    assert len(trial.series("loss")) == 25
    assert trial.observations.steps(kind="gradients") == [*range(10), 10, 20]
    seen = {"parameters", "gradients"} | (set() if in_graph else {"updates", "outputs"})
    assert set(trial.statistics(10).kinds) == seen
    if not in_graph:
        row = trial.statistics(10).row
        name = "weights/out/kernel:0"
        assert row(f"update/{name}")["rms"] == pytest.approx(
            0.1 * row("gradients/out/kernelGrad")["rms"], rel=1e-3
        )
        assert trial.facts(10)["optimizers"][0]["class"] == "SGD"


def test_whoever_says_what_to_save_gets_that_alone(tmp_path):
    for name, options in {
        "collections": {"include_collections": ["weights"]},
        "steps": {"save_config": EVERY_STEP},
        "everything": {"save_all": True},
    }.items():
        with smd.KerasHook(str(tmp_path / name), **options) as hook:
            assert hook.has_default_hook_configuration() is (name == "steps")
            fit(model_of(), hook, epochs=1)
        with pytest.raises(ObservationsUnavailable):
            trial_of(tmp_path / name).statistics(0)


def test_updates_of_a_model_too_large_to_copy_are_those_of_its_samples(run, monkeypatch):
    from smdebug.saving.arrays import array_updates

    monkeypatch.setattr(array_updates, "MIN_BYTES", 64)
    trial = watched(run)
    assert trial.facts(0)["updates_are_sampled"] is True
    assert trial.statistics(0).row("update/dense/weights/dense/kernel:0")["count"] == 128
