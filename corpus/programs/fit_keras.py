"""Trainings with Keras on TensorFlow: healthy, and with faults. Keras is imported when one of them begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets

from corpus.cases import fault, healthy

Rows = tuple[Any, Any]


def _digits() -> tuple[Rows, Rows]:
    """The digits to train on, and others for validation."""
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order]
    return (images[:1437], labels[:1437]), (images[1437:], labels[1437:])


def _keras(seed: int) -> Any:
    import keras

    keras.utils.set_random_seed(seed)
    return keras


def _dense(keras: Any, *, width: int = 48, last: str | None = None, classes: int = 10) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(width, activation="relu", name="first"),
            layers.Dense(width, activation="relu", name="second"),
            layers.Dense(classes, activation=last, name="head"),
        ]
    )


def _compile(keras: Any, model: Any, optimizer: Any, *, from_logits: bool = True) -> None:
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits), metrics=["accuracy"])


def _fit(model: Any, train: Rows, validation: Rows | None, *, epochs: int = 6, **more: Any) -> None:
    model.fit(*train, batch_size=64, epochs=epochs, validation_data=validation, verbose=0, **more)


# Healthy


@healthy(framework="keras", held_out=False)
def keras_dense_network(seed: int) -> None:
    keras = _keras(seed)
    model = _dense(keras)
    _compile(keras, model, keras.optimizers.Adam(2e-3))
    _fit(model, *_digits())


@healthy(framework="keras", held_out=True)
def keras_convolutions_with_normalisation(seed: int) -> None:
    keras = _keras(seed)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Reshape((8, 8, 1)),
            layers.Conv2D(12, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(24, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )
    _compile(keras, model, keras.optimizers.Adam(5e-3))
    _fit(model, *_digits())


@healthy(framework="keras", held_out=False)
def keras_regression(seed: int) -> None:
    keras = _keras(seed)
    features, target = datasets.load_diabetes(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    target = (target - target.mean()) / target.std()
    layers = keras.layers
    model = keras.Sequential([keras.Input((10,)), layers.Dense(16, activation="tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(5e-3), "mse")
    _fit(model, (features[:350], target[:350]), (features[350:], target[350:]), epochs=20)


@healthy(framework="keras", held_out=True)
def keras_text_with_an_lstm(seed: int) -> None:
    keras = _keras(seed)
    random = np.random.default_rng(seed)
    tokens = random.integers(1, 30, (800, 10))
    labels = ((tokens < 12).sum(1) > 4).astype(int)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((10,), dtype="int32"),
            layers.Embedding(30, 16),
            layers.LSTM(24),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(5e-3), "binary_crossentropy", metrics=["accuracy"])
    _fit(model, (tokens[:600], labels[:600]), (tokens[600:], labels[600:]), epochs=10)


@healthy(framework="keras", held_out=False)
def keras_frozen_base(seed: int) -> None:
    keras = _keras(seed)
    model = _dense(keras)
    model.get_layer("first").trainable = False
    _compile(keras, model, keras.optimizers.SGD(0.1, momentum=0.9))
    _fit(model, *_digits())


@healthy(framework="keras", held_out=True)
def keras_autoencoder(seed: int) -> None:
    keras = _keras(seed)
    (images, _), (others, _) = _digits()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(32, activation="relu"),
            layers.Dense(8),
            layers.Dense(32, activation="relu"),
            layers.Dense(64, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), "mse")
    _fit(model, (images, images), (others, others), epochs=8)


# Faults


@fault(
    "loss input",
    r"loss|softmax|head|output|predictions",
    source="from_logits forgotten",
    held_out=False,
    framework="keras",
)
def keras_logits_taken_for_probabilities(seed: int, faulty: bool) -> None:
    """Without from_logits, Keras takes outputs for probabilities."""
    keras = _keras(seed)
    model = _dense(keras, last=None if faulty else "softmax")
    _compile(keras, model, keras.optimizers.Adam(2e-3), from_logits=False)
    _fit(model, *_digits())


@fault(
    "learning rate",
    r".*",
    source="stackoverflow 37624102",
    held_out=False,
    framework="keras",
    also=("exploding", "dead activation"),
)
def keras_rate_a_thousand_times_too_large(seed: int, faulty: bool) -> None:
    keras = _keras(seed)
    model = _dense(keras)
    _compile(keras, model, keras.optimizers.Adam(2.0 if faulty else 2e-3))
    _fit(model, *_digits())


@fault("dead activation", r"first|second", source="dead ReLU", held_out=False, framework="keras")
def keras_dead_rectifiers(seed: int, faulty: bool) -> None:
    keras = _keras(seed)
    model = _dense(keras)
    if faulty:
        kernel, bias = model.get_layer("second").get_weights()
        model.get_layer("second").set_weights([kernel, bias - 20])
    _compile(keras, model, keras.optimizers.SGD(0.05))
    _fit(model, *_digits())


@fault(
    "memorising",
    r".*",
    visible_from=300,
    onset=0,
    source="labels shuffled or rolled",
    held_out=True,
    framework="keras",
    also=("overfitting",),
)
def keras_shuffled_labels(seed: int, faulty: bool) -> None:
    keras = _keras(seed)
    (images, labels), validation = _digits()
    images, labels = images[:384], labels[:384]
    if faulty:
        labels = np.random.default_rng(seed).permutation(labels)
    model = _dense(keras, width=128)
    _compile(keras, model, keras.optimizers.Adam(3e-3))
    _fit(model, (images, labels), validation, epochs=60 if faulty else 10)


@fault(
    "unscaled input",
    r"input|first|keras_tensor",
    source="stackoverflow 52800582, 44066044",
    held_out=False,
    framework="keras",
)
def keras_inputs_in_the_thousands(seed: int, faulty: bool) -> None:
    keras = _keras(seed)
    features, target = datasets.load_diabetes(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    target = (target - target.mean()) / target.std()
    if faulty:
        features = features * 3000 + 20_000
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((10,)), layers.Dense(32, activation="tanh", name="first"), layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(3e-3), "mse")
    _fit(model, (features, target), None, epochs=15)
