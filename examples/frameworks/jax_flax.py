"""JAX, with Flax and Optax.

python examples/frameworks/jax_flax.py --out-dir /tmp/jax-run
"""

import argparse

import flax.linen
import jax
import jax.numpy as jnp
import optax

import smdebug.jax as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir


class Net(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        return flax.linen.Dense(1)(flax.linen.relu(flax.linen.Dense(16)(x)))


model, optimizer = Net(), optax.adam(0.01)
inputs = jax.random.normal(jax.random.key(0), (64, 8))
params = model.init(jax.random.key(1), inputs)
state = optimizer.init(params)


@jax.jit
def value_and_gradients(params):
    def loss(params):
        return jnp.mean((model.apply(params, inputs)[:, 0] - inputs.sum(axis=1)) ** 2)

    return jax.value_and_grad(loss)(params)


with smd.Hook(
    out_dir,
    save_config=smd.SaveConfig(save_interval=10),
    include_collections=["weights", "gradients"],
) as hook:
    for _ in range(50):
        with hook.step(smd.modes.TRAIN):
            loss, gradients = value_and_gradients(params)
            hook.record("loss", loss)
            hook.record_weights(params)
            hook.record_gradients(gradients)
        updates, state = optimizer.update(gradients, state)
        params = optax.apply_updates(params, updates)

trial = smd.create_trial(out_dir)
print({step: round(float(v), 2) for step, v in trial.tensor("loss").values().items()})
