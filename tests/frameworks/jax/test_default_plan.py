"""What the hook for JAX observes when it is given a place and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smdebug.jax as smd
from smdebug.trials.observations import ObservationsUnavailable


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


@jax.jit
def value_and_gradients(params, inputs, key):
    def loss(params):
        kept = jax.random.bernoulli(key, 0.8, (16, 4))
        hidden = jnp.tanh((inputs * kept) @ params["output"]["kernel"] + params["output"]["bias"])
        return jnp.mean((hidden - inputs[:, :3]) ** 2)

    return jax.value_and_grad(loss)(params)


def train(hook=None, steps=25):
    key = jax.random.key(0)
    params = {"output": {"kernel": jax.random.normal(key, (4, 3)), "bias": jnp.zeros(3)}}
    for step in range(steps):
        key, own = jax.random.split(key)
        inputs = jax.random.normal(own, (16, 4))
        if hook is not None:
            hook.begin_step(smd.modes.TRAIN)
        loss, gradients = value_and_gradients(params, inputs, own)
        updates = jax.tree.map(lambda gradient: -0.1 * gradient, gradients)
        if hook is not None:
            hook.record("loss", loss)
            hook.record("learning_rate", 0.1 / (step + 1))
            hook.record_batch(inputs)
            hook.record_weights(params)
            hook.record_gradients(gradients)
            hook.record_updates(updates)
            hook.record_layers({"intermediates": {"output": {"__call__": (inputs,)}}})
        params = jax.tree.map(jnp.add, params, updates)
    return params, key


def test_a_watched_training_is_the_same_to_the_last_bit(run):
    alone, key = train()
    with smd.Hook(run) as hook:
        seen, its_key = train(hook)
    pairs = zip(jax.tree.leaves(alone), jax.tree.leaves(seen), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert np.array_equal(jax.random.key_data(key), jax.random.key_data(its_key))


def test_numbers_are_series_and_trees_are_measured(run):
    with smd.Hook(run) as hook:
        train(hook)
    trial = smd.create_trial(run)
    assert len(trial.series("loss")) == len(trial.series("learning_rate")) == 25
    assert trial.observations.steps() == [*range(10), 10, 20]
    statistics = trial.statistics(20)
    kinds = {kind: statistics.of(kind).names for kind in set(statistics.kinds)}
    assert kinds == {
        "parameters": ["output/bias", "output/kernel"],
        "gradients": ["gradient/output/bias", "gradient/output/kernel"],
        "updates": ["update/output/bias", "update/output/kernel"],
        "inputs": ["batch_input_0"],
        "outputs": ["output/output"],
    }
    row = statistics.row
    assert row("update/output/kernel")["rms"] == pytest.approx(
        0.1 * row("gradient/output/kernel")["rms"], rel=1e-5
    )
    facts = trial.facts(20)
    assert (facts["shapes"], facts["distinct_rows"]) == ([[16, 4]], 16)
    assert trial.tensor("loss").value(20) == np.float32(trial.series("loss").values[20])


def test_a_number_whose_memory_was_donated_is_left_out(run):
    double = jax.jit(lambda value: value * 2, donate_argnums=0)
    with smd.Hook(run) as hook:
        loss = jnp.float32(1.0)
        for _ in range(13):
            with hook.step(smd.modes.TRAIN):
                hook.record("loss", loss)
                loss = double(loss)
    values = smd.create_trial(run).series("loss").values
    assert len(values) == 13
    assert all(np.isnan(value) or value == 2.0**step for step, value in enumerate(values))


def test_whoever_says_what_to_save_gets_that_alone(run):
    with smd.Hook(run, include_collections=["weights"]) as hook:
        train(hook, steps=3)
    with pytest.raises(ObservationsUnavailable):
        smd.create_trial(run).statistics(0)
