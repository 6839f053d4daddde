"""A training on two devices: `python -m tests.frameworks.tensorflow.replicas RUN`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

import smdebug.tensorflow as smd


def train(strategy: Any, run: str = "") -> list[Any]:
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, name="dense")])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    inputs = np.random.default_rng(0).random((16, 4)).astype("float32")
    labels = (inputs[:, 0] > 0.5).astype(int)
    hooks = []
    if run:
        every = smd.SaveConfig(save_interval=1)
        hooks = [smd.KerasHook(run, save_config=every, save_all=True)]
    model.fit(inputs, labels, batch_size=4, epochs=1, verbose=0, callbacks=hooks)
    for hook in hooks:
        hook.close()
    return model.get_weights()


def main(run: str) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    watched, alone = train(strategy, run), train(strategy)
    same = all(np.array_equal(a, b) for a, b in zip(watched, alone, strict=True))
    print(json.dumps({"replicas": strategy.num_replicas_in_sync, "same": same}))


if __name__ == "__main__":
    main(*sys.argv[1:])
