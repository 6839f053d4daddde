"""Facts of a Keras training that no tensor shows: layers, optimizer, loss and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from smdebug.numbers.batches import label_facts
from smdebug.tensorflow.capture import gradient_names

MODE_DEPENDENT = (
    keras.layers.BatchNormalization,
    keras.layers.Dropout,
    keras.layers.GaussianNoise,
    keras.layers.GaussianDropout,
    keras.layers.RNN,
    keras.layers.MultiHeadAttention,
)
"""Layers whose result depends on `training`, unless their dropout is 0."""
_CRITERIA = {
    "categorical_crossentropy": "cross entropy",
    "sparse_categorical_crossentropy": "cross entropy",
    "binary_crossentropy": "binary cross entropy",
    "mean_squared_error": "mean squared error",
    "mse": "mean squared error",
    "mean_absolute_error": "mean absolute error",
    "mae": "mean absolute error",
    "huber": "Huber",
    "kl_divergence": "Kullback-Leibler divergence",
}
_PROBABILITIES = {"softmax": "softmax", "sigmoid": "sigmoid", "log_softmax": "log-softmax"}
_OF_PROBABILITIES = frozenset({"cross entropy", "binary cross entropy"})


def model_facts(model: Any, layers: Mapping[int, str], names: Mapping[int, str]) -> dict[str, Any]:
    """Return the layers of a model with their classes and activations, and its frozen parameters."""
    known = list(_layers(model, layers))
    frozen = {id(weight) for layer, _ in known if not layer.trainable for weight in layer.weights}
    activations = {name: found for layer, name in known if (found := activation_of(layer))}
    return {
        "modules": [[name, type(layer).__name__, depends_on_mode(layer)] for layer, name in known],
        "activations": activations,
        "frozen": [name for variable, name in names.items() if variable in frozen],
        "gradient_names": {
            names[id(weight)]: gradient
            for weight, gradient in zip(
                model.trainable_weights,
                gradient_names(model.trainable_weights, model),
                strict=True,
            )
            if id(weight) in names
        },
    }


def depends_on_mode(layer: Any) -> bool:
    """Return whether the layer's own result depends on whether it is called for training."""
    if not isinstance(layer, MODE_DEPENDENT):
        return False
    rate = getattr(layer, "rate", getattr(layer, "dropout", None))
    return not (isinstance(rate, int | float) and rate == 0)


def activation_of(layer: Any) -> str:
    """Return the name of the function that a layer ends with, `linear` for none; "" if it says nothing."""
    if isinstance(layer, keras.layers.Softmax):
        return "softmax"
    activation = getattr(layer, "activation", None)
    return str(getattr(activation, "__name__", "") or "")


def optimizer_facts(optimizer: Any, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return the class of the optimizer, and the parameters that it changes."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    variables = list(getattr(inner, "_trainable_variables", ()))
    known = [names[id(variable)] for variable in variables if id(variable) in names]
    group = {"parameters": known, "others": len(variables) - len(known)}
    return [{"class": type(inner).__name__, "groups": [group]}]


def scale_facts(optimizer: Any) -> dict[str, float]:
    """Return what a `LossScaleOptimizer` multiplies the loss with."""
    scale = getattr(optimizer, "dynamic_scale", None) if getattr(optimizer, "built", False) else None
    return {} if scale is None else {"loss_scale": float(keras.ops.convert_to_numpy(scale))}


def learning_rate(optimizer: Any) -> float | None:
    """Return the learning rate at this step; None if the optimizer has none."""
    rate = getattr(getattr(optimizer, "inner_optimizer", optimizer), "learning_rate", None)
    return None if rate is None else float(keras.ops.convert_to_numpy(rate))


def loss_term(
    model: Any, labels: np.ndarray[Any, Any], predicted: tuple[int | None, ...]
) -> dict[str, Any] | None:
    """Return what is known of a model's loss; None if it has several, or computes its own."""
    loss = getattr(model, "loss", None)
    if loss is None or isinstance(loss, list | tuple | dict):
        return None
    name, takes_logits = _loss_name(loss)
    criterion = _CRITERIA.get(name, name.replace("_", " "))
    if takes_logits and criterion == "binary cross entropy":
        criterion = "binary cross entropy with logits"
    given = _output_activation(model)
    if takes_logits and keras.backend.backend() == "tensorflow" and not model.run_eagerly:
        given = ""  # in a graph, Keras takes what the softmax was given
    term = {
        "criterion": criterion,
        "given": _PROBABILITIES.get(given, ""),
        "rows": int(labels.shape[0]) if labels.ndim else 1,
        "classes": int(predicted[-1] or 0) if predicted else 1,
        **label_facts(labels),
    }
    if criterion in _OF_PROBABILITIES:
        term["expects"] = "logits" if takes_logits else "probabilities"
        if given == "linear" and not takes_logits:
            term["given"] = "logits"
    return term


def _layers(model: Any, layers: Mapping[int, str]) -> Iterator[tuple[Any, str]]:
    flat: Iterable[Any] = model._flatten_layers(include_self=False, recursive=True)
    for layer in flat:
        name = layers.get(id(layer))
        if name is not None:
            yield layer, name


def _loss_name(loss: Any) -> tuple[str, bool]:
    """Return the name of a loss, and whether it takes logits."""
    if isinstance(loss, str):
        return _snake(loss), False
    function = getattr(loss, "fn", loss)
    settings = getattr(loss, "_fn_kwargs", {})
    name = getattr(function, "__name__", type(loss).__name__)
    return _snake(name), bool(settings.get("from_logits"))


def _snake(name: str) -> str:
    letters = [f"_{letter.lower()}" if letter.isupper() else letter for letter in name]
    return "".join(letters).lstrip("_").replace("k_l_", "kl_")


def _output_activation(model: Any) -> str:
    """Return the activation of the layer that the model's predictions come from."""
    outputs = getattr(model, "outputs", None)
    if not outputs or len(outputs) != 1:
        return ""
    history = getattr(outputs[0], "_keras_history", None)
    return "" if history is None else activation_of(history.operation)
