"""The hook for JAX, on real training loops."""

import logging

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import smdebug.jax as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)
INPUTS = np.random.default_rng(0).random((8, 4)).astype(np.float32)


class Net(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        return flax.linen.Dense(1)(flax.linen.relu(flax.linen.Dense(3)(x)))


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def train(hook=None, steps=3):
    """Train with Flax and Optax; gives the parameters and the gradients of each step."""
    model, optimizer = Net(), optax.adam(0.1)
    params = model.init(jax.random.key(0), INPUTS)
    state = optimizer.init(params)

    @jax.jit
    def gradients_of(params):
        def loss(params):
            outputs, seen = model.apply(params, INPUTS, capture_intermediates=True)
            return jnp.mean(outputs**2), seen

        return jax.value_and_grad(loss, has_aux=True)(params)

    @jax.jit
    def update(params, state, gradients):
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state

    held = []
    for _ in range(steps):
        if hook is not None:
            hook.begin_step(smd.modes.TRAIN)
        (loss, seen), gradients = gradients_of(params)
        held.append((jax.device_get(params), jax.device_get(gradients)))
        if hook is not None:
            hook.record("loss", loss)
            hook.record_weights(params)
            hook.record_gradients(gradients)
            hook.record_layers(seen)
            hook.end_step()
        params, state = update(params, state, gradients)
    return params, held


def test_trees_are_saved_leaf_by_leaf_under_their_paths(run):
    with smd.Hook(str(run), save_config=EVERY_STEP, save_all=True) as hook:
        _, held = train(hook)
    trial = smd.create_trial(str(run))
    assert trial.steps(smd.modes.TRAIN) == [0, 1, 2]
    assert trial.tensor_names(collection="weights") == ["Dense_0/kernel", "Dense_1/kernel"]
    assert trial.tensor_names(collection="biases") == ["Dense_0/bias", "Dense_1/bias"]
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert trial.tensor_names(collection="outputs") == [
        "output/Dense_0",
        "output/Dense_1",
        "output/__call__",
    ]
    for step, (params, gradients) in enumerate(held):
        for name, tree in (("", params), ("gradient/", gradients)):
            np.testing.assert_array_equal(
                trial.tensor(f"{name}Dense_0/kernel").value(step),
                tree["params"]["Dense_0"]["kernel"],
            )


def test_a_training_has_the_same_results_with_and_without_the_hook(run):
    with smd.Hook(str(run), save_config=EVERY_STEP, save_all=True) as hook:
        watched, _ = train(hook)
    alone, _ = train()
    jax.tree.map(np.testing.assert_array_equal, watched, alone)


def test_where_nothing_is_due_no_leaf_is_looked_at(run):
    class Tree:
        pass

    jax.tree_util.register_pytree_node(Tree, lambda tree: 1 / 0, lambda *parts: Tree())
    with smd.Hook(str(run), save_config=smd.SaveConfig(save_interval=2)) as hook:
        hook.begin_step()
        with pytest.raises(ZeroDivisionError):
            hook.record_gradients(Tree())
        hook.begin_step()
        hook.record_gradients(Tree())


def test_modules_of_nnx_are_trees_too(run):
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    with smd.Hook(str(run), save_config=EVERY_STEP, save_all=True) as hook, hook.step():
        hook.record_weights(nnx.state(model, nnx.Param))
    trial = smd.create_trial(str(run))
    assert trial.tensor_names() == ["bias", "kernel"]
    np.testing.assert_array_equal(trial.tensor("kernel").value(0), model.kernel[...])


def test_donated_buffers_are_saved_as_they_were(run):
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    value = jnp.zeros(4, jnp.bfloat16)
    with smd.Hook(str(run), save_config=EVERY_STEP, save_all=True) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("x", value)
            value = step(value)
    trial = smd.create_trial(str(run))
    assert [trial.tensor("x").value(n).astype(float)[0] for n in range(3)] == [0, 1, 2]
    assert trial.tensor("x").value(0).dtype.name == "bfloat16"


def test_what_is_being_traced_is_named_once_with_what_to_do(run, caplog):
    hook = smd.Hook(str(run), save_config=EVERY_STEP, save_all=True)
    hook.logger.addHandler(caplog.handler)

    @jax.jit
    def double(x):
        hook.record("inside", x)
        hook.record("inside", x)
        return 2 * x

    with caplog.at_level(logging.WARNING, "smdebug"), hook.step():
        assert double(1.0) == 2
    hook.close()
    hook.logger.removeHandler(caplog.handler)
    messages = [r.getMessage() for r in caplog.records if "inside" in r.getMessage()]
    assert len(messages) == 1
    assert "Return it" in messages[0]
