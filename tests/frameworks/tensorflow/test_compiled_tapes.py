"""Loops whose train step is a tf.function that uses the wrapped tape."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import smdebug.tensorflow as smd

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.random((12, 4)).astype("float32")
TARGETS = INPUTS.sum(axis=1, keepdims=True)
IMAGES = RANDOM.random((4, 8, 8, 3)).astype("float32")


def hook_in(run, interval=1, **options):
    save_config = smd.SaveConfig(save_interval=interval)
    return smd.KerasHook(str(run), save_config=save_config, save_all=True, **options)


def unwatched(tape):
    return tape


def dense():
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(3, activation="relu", name="hidden"),
            layers.Dropout(0.2),
            layers.Dense(1, name="out"),
        ]
    )


def convolutional():
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(name="norm"),
            layers.MaxPool2D(),
            layers.Flatten(),
            layers.Dense(3, kernel_regularizer="l2"),
        ]
    )


def step_of(model, optimizer, wrap, **options):
    @tf.function(**options)
    def step(inputs, targets):
        with wrap(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((model(inputs, training=True) - targets) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients

    return step


def trained(wrap, make=dense, data=(INPUTS, TARGETS), steps=4, **options):
    """Return the losses of a training, and the bytes of the weights after it."""
    model = make()
    step = step_of(model, keras.optimizers.AdamW(0.1, clipnorm=1.0), wrap, **options)
    losses = [step(*data)[0].numpy().item() for _ in range(steps)]
    return losses, [weight.numpy().tobytes() for weight in model.weights]


def test_losses_gradients_and_weights_are_saved_at_steps_that_are_due(run):
    hook, model = hook_in(run, interval=2), dense()
    step = step_of(model, hook.wrap_optimizer(keras.optimizers.SGD(0.1)), hook.wrap_tape)
    held = []
    for _ in range(5):
        kernel = model.get_layer("hidden").kernel.numpy()
        loss, gradients = step(INPUTS, TARGETS)
        held.append((loss.numpy(), gradients[0].numpy(), kernel))
    hook.close()
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 2, 4]
    assert trial.tensor_names(collection="losses") == ["loss"]
    (gradient_name,) = trial.tensor_names(regex=r"gradients/.*hidden/kernelGrad")
    (weight_name,) = trial.tensor_names(regex=r"weights/.*hidden/kernel:0")
    for number in trial.steps():
        loss, gradient, kernel = held[number]
        assert trial.tensor("loss").value(number) == loss
        np.testing.assert_array_equal(trial.tensor(gradient_name).value(number), gradient)
        np.testing.assert_array_equal(trial.tensor(weight_name).value(number), kernel)
    assert trial.tensor("sgd/learning_rate:0").value(4) == np.float32(0.1)


@pytest.mark.parametrize("interval", [1, 1000])
@pytest.mark.parametrize(
    ("make", "data"), [(dense, (INPUTS, TARGETS)), (convolutional, (IMAGES, np.float32(1)))]
)
def test_the_training_is_the_same_to_the_bit(run, interval, make, data):
    hook = hook_in(run, interval)
    watched = trained(hook.wrap_tape, make, data)
    hook.close()
    assert watched == trained(unwatched, make, data)


def test_each_shape_and_each_function_counts_on_in_the_same_run(run):
    hook, model = hook_in(run), dense()
    optimizer = keras.optimizers.SGD(0.1)
    first = step_of(model, optimizer, hook.wrap_tape)
    second = step_of(model, optimizer, hook.wrap_tape, reduce_retracing=True)
    losses = []
    for rows in (12, 6, 12, 3):
        for step in (first, second):
            losses.append(step(INPUTS[:rows], TARGETS[:rows])[0].numpy())
    hook.close()
    loss = smd.create_trial(str(run)).tensor("loss")
    assert [loss.value(step).item() for step in loss.steps()] == losses


def test_an_epoch_that_is_a_function_has_a_step_for_each_batch(run):
    def losses_of(wrap):
        model = dense()
        step = step_of(model, keras.optimizers.SGD(0.1), wrap)
        batches = tf.data.Dataset.from_tensor_slices((INPUTS, TARGETS)).batch(3)

        @tf.function
        def epoch():
            last = 0.0
            for inputs, targets in batches:
                last, _ = step(inputs, targets)
            return last

        return [epoch().numpy() for _ in range(3)]

    hook = hook_in(run)
    ends = losses_of(hook.wrap_tape)
    hook.close()
    loss = smd.create_trial(str(run)).tensor("loss")
    assert loss.steps() == list(range(12))
    assert [loss.value(step).item() for step in (3, 7, 11)] == ends == losses_of(unwatched)


def test_two_tapes_of_a_function_save_one_step(run):
    hook, generator, critic = hook_in(run), dense(), keras.layers.Dense(1, name="critic")
    critic.build((None, 4))

    @tf.function
    def step():
        with hook.wrap_tape(tf.GradientTape()) as tape, hook.wrap_tape(tf.GradientTape()) as other:
            made = tf.reduce_mean(generator(INPUTS) ** 2)
            judged = tf.reduce_mean(critic(INPUTS) ** 2)
        tape.gradient(made, generator.trainable_variables)
        other.gradient(judged, critic.trainable_variables)
        return made, judged

    held = [[loss.numpy() for loss in step()] for _ in range(2)]
    hook.close()
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 1]
    assert [trial.tensor(name).value(1).item() for name in ("loss", "loss_1")] == held[1]


def test_sparse_gradients_are_saved_dense(run):
    hook, words = hook_in(run), keras.layers.Embedding(6, 2, name="words")
    words.build()

    @tf.function
    def step(numbers):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(words(numbers) ** 2)
        (gradient,) = tape.gradient(loss, words.trainable_variables)
        assert isinstance(gradient, tf.IndexedSlices)
        return tf.convert_to_tensor(gradient)

    gradient = step(np.array([[0, 1, 1], [4, 0, 1]]))
    hook.close()
    trial = smd.create_trial(str(run))
    (name,) = trial.tensor_names(collection="gradients")
    np.testing.assert_array_equal(trial.tensor(name).value(0), gradient.numpy())


def test_jacobians_and_gradients_of_gradients_are_as_without_the_hook(run):
    def computed(wrap):
        variable = tf.Variable([1.0, 2.0])

        @tf.function
        def step():
            with tf.GradientTape() as outer:
                with wrap(tf.GradientTape(persistent=True)) as tape:
                    cubes = variable**3
                gradient = tape.gradient(cubes, variable)
            jacobian = tape.jacobian(cubes, variable)
            return gradient, jacobian, outer.gradient(gradient, variable)

        return [value.numpy().tolist() for value in step()]

    hook = hook_in(run)
    assert computed(hook.wrap_tape) == computed(unwatched)
    hook.close()
    assert smd.create_trial(str(run)).tensor_names(collection="losses") == ["loss"]


def test_with_jit_compile_a_warning_says_that_nothing_is_saved(run, caplog):
    hook = hook_in(run)
    assert trained(hook.wrap_tape, jit_compile=True) == trained(unwatched, jit_compile=True)
    hook.close()
    assert "jit_compile" in caplog.text


def test_with_a_strategy_a_warning_says_that_nothing_is_saved(run, caplog):
    hook, strategy = hook_in(run), tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        variable = tf.Variable(2.0)

    def of_replica():
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = variable * variable
        return tape.gradient(loss, variable)

    assert tf.function(lambda: strategy.run(of_replica))().numpy() == 4
    hook.close()
    assert "distribution strategy" in caplog.text


def test_a_train_step_of_fit_saves_each_batch_once(run):
    hook = hook_in(run)

    class Trained(keras.Model):
        def __init__(self):
            super().__init__()
            self.out = keras.layers.Dense(1)

        def call(self, inputs):
            return self.out(inputs)

        def train_step(self, data):
            inputs, targets = data
            with hook.wrap_tape(tf.GradientTape()) as tape:
                loss = tf.reduce_mean((self(inputs) - targets) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    model = Trained()
    model.compile("sgd", jit_compile=False)
    model.fit(INPUTS, TARGETS, batch_size=4, epochs=2, verbose=0, callbacks=[hook])
    hook.close()
    assert smd.create_trial(str(run)).steps() == list(range(6))


def test_the_function_continues_after_the_hook_was_closed(run):
    hook, model = hook_in(run), dense()
    step = step_of(model, keras.optimizers.SGD(0.1), hook.wrap_tape)
    step(INPUTS, TARGETS)
    hook.close()
    step(INPUTS, TARGETS)
    assert smd.create_trial(str(run)).steps() == [0]


def test_a_stop_ends_the_function_before_it_updates_the_weights(run):
    hook, model = hook_in(run, look_for_stop=0), dense()
    step = step_of(model, keras.optimizers.SGD(0.1), hook.wrap_tape)
    for _ in range(3):
        step(INPUTS, TARGETS)
    assert hook.flush(30)
    control = run / "control"
    control.mkdir(exist_ok=True)
    (control / "stop").write_text('{"reason": "enough"}')

    def train_until_stopped():
        for _ in range(400):  # the request is read in the background
            before[:] = [weight.numpy().tobytes() for weight in model.trainable_weights]
            step(INPUTS, TARGETS)
            time.sleep(0.05)

    before = []
    with pytest.raises(tf.errors.OpError, match=r"TrainingStopped.*enough"):
        train_until_stopped()
    assert [weight.numpy().tobytes() for weight in model.trainable_weights] == before
    hook.close()
