"""A loop with a gradient tape.

python examples/frameworks/tensorflow_tape.py --out-dir /tmp/tape-run
"""

import argparse

import keras
import numpy as np
import tensorflow as tf

import smdebug.tensorflow as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, name="answer")])
inputs = np.random.default_rng(0).random((64, 8)).astype("float32")
labels = inputs.sum(axis=1, keepdims=True)

hook = smd.KerasHook(
    out_dir,
    save_config=smd.SaveConfig(save_interval=5),
    include_collections=["weights", "gradients"],
)
hook.register_model(model)
optimizer = hook.wrap_optimizer(keras.optimizers.SGD(0.05))
hook.set_mode(smd.modes.TRAIN)
for _ in range(20):
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean(tf.square(model(inputs) - labels))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
hook.close()

trial = smd.create_trial(out_dir)
print({step: round(v.item(), 3) for step, v in trial.tensor("loss").values().items()})
