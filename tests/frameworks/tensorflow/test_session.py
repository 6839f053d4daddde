"""The hook for sessions, on a real one."""

import numpy as np
import pytest
import tensorflow as tf

import smdebug.tensorflow as smd
from smdebug.exceptions import SMDebugNotImplementedError

v1 = tf.compat.v1
EVERY_STEP = smd.SaveConfig(save_interval=1)


def train(hook=None, steps=4):
    """A linear fit in a graph; gives the weights that come out."""
    with tf.Graph().as_default():
        v1.set_random_seed(0)
        inputs = v1.placeholder(tf.float32, (None, 3), name="inputs")
        v1.placeholder(tf.float32, (), name="unused")
        weight = v1.get_variable("layer1/W", (3, 1), initializer=v1.ones_initializer())
        bias = v1.get_variable("layer1/bias", (1,), initializer=v1.zeros_initializer())
        outputs = tf.matmul(inputs, weight) + bias
        v1.losses.mean_squared_error(tf.zeros_like(outputs), outputs)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        if hook is not None:
            optimizer = hook.wrap_optimizer(optimizer)
        step = optimizer.minimize(v1.losses.get_total_loss())
        with v1.train.MonitoredSession(hooks=[] if hook is None else [hook]) as session:
            for number in range(steps):
                if session.should_stop():
                    break
                session.run(step, {inputs: np.full((2, 3), number + 1, np.float32)})
            return None if session.should_stop() else session.run(weight)


def test_variables_losses_and_gradients_are_saved_under_their_names_in_the_graph(run):
    with smd.SessionHook(
        str(run),
        save_config=EVERY_STEP,
        include_collections=["weights", "biases", "gradients", "losses"],
    ) as hook:
        train(hook)
    trial = smd.create_trial(str(run))
    assert trial.steps()[:4] == [0, 1, 2, 3]
    assert trial.tensor_names(collection="weights") == ["layer1/W:0"]
    assert trial.tensor_names(collection="biases") == ["layer1/bias:0"]
    assert trial.tensor_names(collection="losses") == ["mean_squared_error/value:0"]
    gradients = trial.tensor_names(collection="gradients")
    assert all(name.startswith("gradients/") and name.endswith(":0") for name in gradients)
    (of_weight,) = [n for n in gradients if trial.tensor(n).value(0).shape == (3, 1)]
    weight = trial.tensor("layer1/W:0")
    np.testing.assert_array_equal(weight.value(0), np.ones((3, 1)))
    for step in range(3):
        np.testing.assert_allclose(
            weight.value(step + 1),
            weight.value(step) - 0.1 * trial.tensor(of_weight).value(step),
            rtol=1e-5,
        )


def test_the_session_has_the_same_results_with_and_without_the_hook(run):
    with smd.SessionHook(str(run), save_config=EVERY_STEP, save_all=True) as hook:
        watched = train(hook)
    np.testing.assert_array_equal(watched, train())


def test_what_was_not_fed_is_left_out(run):
    with smd.SessionHook(str(run), save_config=EVERY_STEP, include_regex="inputs|unused") as hook:
        train(hook)
    names = smd.create_trial(str(run)).tensor_names(step=0)
    assert "inputs:0" in names
    assert "unused:0" not in names


def test_asked_to_stop_the_session_says_so(run):
    hook = smd.SessionHook(str(run), save_config=EVERY_STEP, look_for_stop=0)

    class Ask(smd.SessionHook):
        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)
            if self.step == 3 and not self.stopped:
                (run / "control").mkdir()
                (run / "control" / "stop").write_text('{"reason": "enough"}')

    hook.__class__ = Ask
    assert train(hook, steps=40) is None
    hook.close()
    assert "enough" in str(hook.stopped)
    assert len(smd.create_trial(str(run)).steps()) < 10


def test_where_there_are_no_estimators_their_hook_says_so(run):
    assert not hasattr(tf, "estimator")
    with pytest.raises(SMDebugNotImplementedError, match=r"2\.16.*KerasHook"):
        smd.EstimatorHook(str(run))


def test_a_collection_takes_tensors_variables_and_layers():
    collection = smd.Collection("mine")
    collection.add([tf.Variable(1.0, name="v"), [tf.Variable(2.0, name="w")]])
    assert collection.tensor_names == {"v:0", "w:0"}


# Under the default plan


def dropping(hook=None, steps=13):
    """Train with dropout, reading the weight in between; gives what comes out, and random numbers."""
    with tf.Graph().as_default():
        v1.set_random_seed(0)
        inputs = v1.placeholder(tf.float32, (None, 3), name="inputs")
        weight = v1.get_variable("weight", (3, 1), initializer=v1.glorot_uniform_initializer())
        outputs = tf.matmul(tf.nn.dropout(inputs, 0.4, seed=1), weight)
        loss = v1.losses.mean_squared_error(tf.ones_like(outputs), outputs)
        optimizer = v1.train.AdamOptimizer(0.05)
        if hook is not None:
            optimizer = hook.wrap_optimizer(optimizer)
        step = optimizer.minimize(loss)
        drawn = tf.random.uniform((4,), seed=2)
        with v1.train.MonitoredSession(hooks=[] if hook is None else [hook]) as session:
            for number in range(steps):
                rows = np.random.default_rng(number).random((8, 3), np.float32)
                session.run(step, {inputs: rows})
                if number % 4 == 0:
                    session.run(weight)
            return session.run([weight, drawn])


def test_under_the_default_plan_a_training_is_the_same_to_the_last_bit(run):
    with smd.SessionHook(str(run)) as hook:
        watched = dropping(hook)
    for value, other in zip(watched, dropping(), strict=True):
        np.testing.assert_array_equal(value, other)


def test_losses_of_all_steps_and_measurements_of_saved_ones_are_kept(run):
    with smd.SessionHook(str(run)) as hook:
        dropping(hook)
    trial = smd.create_trial(str(run))
    assert len(trial.series("loss")) == 13  # steps that compute no loss have none
    seen = trial.statistics(9)
    assert seen.of("parameters").names == ["weight:0"]
    assert seen.of("updates").names == ["update/weight:0"]
    facts = trial.facts(9)
    assert facts["gradient_names"] == {"weight:0": seen.of("gradients").names[0]}
    assert facts["optimizers"][0]["class"] == "AdamOptimizer"
    saved = trial.observations.steps(kind="parameters")
    assert {trial.facts(step)["optimizer_steps"] for step in saved} == {True, False}
