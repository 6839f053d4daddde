"""Trainings on a backend of Keras: `python -m tests.frameworks.tensorflow.backend NAME RUN PLANNED`.

One is not watched, one saves everything at each step to RUN, one has the default plan and saves to PLANNED.
Prints the weights that come out of each, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(backend: str, run: str, planned: str) -> None:
    os.environ["KERAS_BACKEND"] = backend
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import smdebug.tensorflow as smd

    every = smd.SaveConfig(save_interval=1)
    print(
        json.dumps(
            {
                "alone": train(),
                "watched": train(smd.KerasHook(run, save_config=every, save_all=True)),
                "planned": train(smd.KerasHook(planned)),
            }
        )
    )


def train(*hooks: Any) -> list[Any]:
    """Train, always from the same beginning; return the weights."""
    import keras
    import numpy as np

    keras.backend.clear_session()
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
    model.fit(
        inputs,
        labels,
        batch_size=5,
        epochs=3,
        verbose=0,
        callbacks=list(hooks),
        validation_data=(inputs, labels),
    )
    for hook in hooks:
        hook.close()
    return [weights.tolist() for weights in model.get_weights()]


if __name__ == "__main__":
    main(*sys.argv[1:])
