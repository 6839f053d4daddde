"""Facts of a Keras training that no tensor shows: layers, optimizer, loss and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from smdebug.numbers.batches import Array, classes_of, label_facts
from smdebug.numbers.loss_terms import (
    ABSOLUTE,
    BINARY,
    BINARY_WITH_LOGITS,
    CROSS_ENTROPY,
    DIVERGENCE,
    HUBER,
    SQUARED,
)
from smdebug.numbers.revealed import same_column
from smdebug.numbers.targets import class_facts, constant_cost, number_facts, some_rows
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
    "categorical_crossentropy": CROSS_ENTROPY,
    "sparse_categorical_crossentropy": CROSS_ENTROPY,
    "binary_crossentropy": BINARY,
    "mean_squared_error": SQUARED,
    "mse": SQUARED,
    "mean_absolute_error": ABSOLUTE,
    "mae": ABSOLUTE,
    "huber": HUBER,
    "kl_divergence": DIVERGENCE,
}
_PROBABILITIES = {"softmax": "softmax", "sigmoid": "sigmoid", "log_softmax": "log-softmax"}
_OF_PROBABILITIES = frozenset({CROSS_ENTROPY, BINARY})
_OF_NUMBERS = frozenset({BINARY, BINARY_WITH_LOGITS, SQUARED, ABSOLUTE, HUBER})


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


def loss_facts(
    model: Any,
    inputs: Sequence[Array],
    labels: Array,
    predicted: tuple[int | None, ...],
    value: float | None,
) -> dict[str, Any] | None:
    """Return what is known of a model's loss; None if it has several, or computes its own.

    `value` is that of the batch, or None if its rows have weights. It is left out where it is more than the
    criterion of these labels: with penalties, smoothed labels, or rows of several steps, which may be masked.
    """
    term = loss_term(model, labels, predicted)
    if term is None:
        return None
    facts: dict[str, Any] = {"factor": 1.0, "broadcast": None, "terms": [term]}
    if value is not None and math.isfinite(value) and len(predicted) <= 2 and _is_plain(model):
        facts["value"] = value
        revealed = _revealed(term["criterion"], inputs, labels)
        if revealed is not None:
            facts["revealed_by"] = revealed
    return facts


def loss_term(model: Any, labels: Array, predicted: tuple[int | None, ...]) -> dict[str, Any] | None:
    """Return what is known of the criterion of a model's loss, and of its labels."""
    loss = getattr(model, "loss", None)
    if loss is None or isinstance(loss, list | tuple | dict):
        return None
    name, takes_logits = _loss_name(loss)
    criterion = _CRITERIA.get(name, name.replace("_", " "))
    if takes_logits and criterion == BINARY:
        criterion = BINARY_WITH_LOGITS
    given = _output_activation(model)
    if takes_logits and keras.backend.backend() == "tensorflow" and not model.run_eagerly:
        given = ""  # in a graph, Keras takes what the softmax was given
    term = {
        "criterion": criterion,
        "given": _PROBABILITIES.get(given, ""),
        "rows": int(labels.shape[0]) if labels.ndim else 1,
        "classes": int(predicted[-1] or 0) if predicted else 1,
        "of_a_layer": True,
        "reduction": _reduction(loss),
        **_targets(criterion, labels, _settings(loss)),
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
    name = getattr(function, "__name__", type(loss).__name__)
    return _snake(name), bool(_settings(loss).get("from_logits"))


def _settings(loss: Any) -> Mapping[str, Any]:
    """Return the arguments that a loss was made with; none of a name or a function."""
    settings = getattr(loss, "_fn_kwargs", {})
    return settings if isinstance(settings, Mapping) else {}


def _reduction(loss: Any) -> str | None:
    name = "mean" if isinstance(loss, str) else getattr(loss, "reduction", "mean")
    return "mean" if name in ("mean", "sum_over_batch_size") else None


def _is_plain(model: Any) -> bool:
    """Return whether the loss is its criterion alone."""
    settings = _settings(model.loss)
    is_smoothed = bool(settings.get("label_smoothing")) or settings.get("ignore_class") is not None
    weight = getattr(getattr(model, "_compile_loss", None), "_user_loss_weights", None)
    return not is_smoothed and settings.get("axis", -1) == -1 and weight is None and not model.losses


def _targets(criterion: str, labels: Array, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the balance of the labels, and what says what the best constant prediction would cost."""
    if criterion == CROSS_ENTROPY:
        classes = classes_of(labels)
        return {} if classes is None else class_facts(classes)
    balance = dict(label_facts(labels))
    if criterion not in _OF_NUMBERS or labels.dtype.kind not in "biuf":
        return balance
    numbers = some_rows(labels).astype(np.float64)
    found = {**balance, **number_facts(numbers)}
    knee = {ABSOLUTE: 0.0, HUBER: settings.get("delta", 1.0)}.get(criterion)
    cost = None if knee is None else constant_cost(numbers, knee, knee or 1.0)
    return found if cost is None else {**found, "constant": cost}


def _revealed(criterion: str, inputs: Sequence[Array], labels: Array) -> list[Any] | None:
    """Return the number of an input and its column that is the target of each row; None if there is none."""
    if labels.dtype.kind not in "biuf":
        return None
    classes = classes_of(labels) if criterion == CROSS_ENTROPY else None
    targets = labels if classes is None else classes
    for number, given in enumerate(inputs):
        column = same_column(targets, given) if given.ndim > 1 and given.dtype.kind in "biuf" else None
        if column is not None:
            return [number, column]
    return None


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
