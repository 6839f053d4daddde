"""Keras, with what is inside a compiled step: gradients, and what a layer gives.

python examples/frameworks/keras_fit.py --out-dir /tmp/keras-run
"""

import argparse

import keras
import numpy as np

import smdebug.tensorflow as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(16, activation="relu", name="hidden"),
        keras.layers.Dense(1, name="answer"),
    ]
)
model.compile("adam", "mse")
inputs = np.random.default_rng(0).random((320, 8)).astype("float32")

hook = smd.KerasHook(
    out_dir,
    save_config=smd.SaveConfig(save_interval=10),
    include_collections=["weights", "gradients", "activations"],
)
hook.get_collection("activations").include("hidden/outputs")
model.fit(inputs, inputs.sum(axis=1), epochs=5, verbose=0, callbacks=[hook])
hook.close()

trial = smd.create_trial(out_dir)
gradient = trial.tensor("gradients/hidden/kernelGrad")
for step in gradient.steps(smd.modes.TRAIN)[::2]:
    print(f"step {step}: mean |gradient| {gradient.reduction_value(step, 'mean', abs=True):.4f}")
