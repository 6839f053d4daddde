"""One training on a backend of Keras: `python -m tests.frameworks.tensorflow.backend NAME [RUN [plan]]`.

Prints the weights that come out, as JSON. With `plan` the hook gets only a path.
"""

from __future__ import annotations

import json
import os
import sys


def main(backend: str, run: str = "", plan: str = "") -> None:
    os.environ["KERAS_BACKEND"] = backend
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np

    import smdebug.tensorflow as smd

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((4,)),
            keras.layers.Dense(5, activation="relu", name="dense"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(2, name="out"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    inputs = np.random.default_rng(0).random((20, 4)).astype("float32")
    labels = (inputs[:, 0] > 0.5).astype(int)
    callbacks = []
    if plan:
        callbacks.append(smd.KerasHook(run))
    elif run:
        every = smd.SaveConfig(save_interval=1)
        callbacks.append(smd.KerasHook(run, save_config=every, save_all=True))
    model.fit(
        inputs,
        labels,
        batch_size=5,
        epochs=3,
        verbose=0,
        callbacks=callbacks,
        validation_data=(inputs, labels),
    )
    if run:
        callbacks[0].close()
    print(json.dumps([weights.tolist() for weights in model.get_weights()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
