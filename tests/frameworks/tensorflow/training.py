"""Small models for Keras, and trainings of them."""

import keras
import numpy as np

import smdebug.tensorflow as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)
INPUTS = np.random.default_rng(0).random((20, 4)).astype("float32")
LABELS = (INPUTS[:, 0] > 0.5).astype(int)


def layers():
    return [
        keras.layers.Dense(5, activation="relu", name="dense"),
        keras.layers.Dropout(0.2, name="dropout"),
        keras.layers.Dense(2, name="out"),
    ]


def compiled(model, optimizer="adam", **settings):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], **settings)
    return model


def small_model(**settings):
    return compiled(keras.Sequential([keras.layers.Input((4,)), *layers()]), **settings)


def hook_in(run, **settings):
    return smd.KerasHook(str(run), **{"save_config": EVERY_STEP, "save_all": True, **settings})


def fit(model, *callbacks, epochs=2, **more):
    model.fit(INPUTS, LABELS, batch_size=5, epochs=epochs, verbose=0, callbacks=list(callbacks), **more)
    return model


def trial_of(run):
    return smd.create_trial(str(run))


def same(first, other):
    """Return whether weights and the states of random generators are equal to the last bit."""
    pairs = zip(states_of(first), states_of(other), strict=True)
    return all(np.array_equal(value, expected) for value, expected in pairs)


def states_of(model):
    """The values of all variables: `variables` has generators, too, which `weights` leaves out."""
    return [keras.ops.convert_to_numpy(variable) for variable in model.variables]
