"""Capturing the inside of a Keras step: inputs and outputs of layers, and gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
from keras import tree

Offer = Callable[[str, str, Any], None]

_here = threading.local()  # replicas are traced in threads of their own
_lock = threading.Lock()
_watching = 0
_layer_call = keras.layers.Layer.__call__
_update_mean = keras.metrics.Mean.update_state
# LossScaleOptimizer has its own `apply`, which calls the inner one from inside a branch.
_appliers = {kind: kind.apply for kind in (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer)}


class Collector:
    """Collects tensors by name while a step runs, or is traced."""

    def __init__(
        self,
        wants: Callable[[str, str], bool],
        layers: dict[int, str],
        model: Any,
        *,
        observes: bool = False,
    ):
        self._wants = wants
        self._observes = observes  # losses of the batch, and no inputs of layers inside
        self._layers = layers
        self._model = model
        self._graph = _graph()
        self._numbers: dict[str, int] = {}  # how many tensors had that name so far
        self.tensors: dict[str, Any] = {}
        self.hidden: str | None = None  # the first inside another graph, which it cannot leave

    def offer(self, name: str, collection: str, values: Any) -> None:
        """Take these tensors, numbered if there are several; a layer called again continues the count."""
        found = [value for value in tree.flatten(values) if keras.ops.is_tensor(value)]
        first = self._numbers.get(name, 0)
        self._numbers[name] = first + len(found)
        for number, value in enumerate(found, start=first):
            numbered = name if len(found) == 1 and not first else f"{name}_{number}"
            if self._wants(numbered, collection):
                if _graph_of(value) is self._graph:
                    # With PyTorch, a tensor would keep what it was computed from.
                    self.tensors[numbered] = value.detach() if hasattr(value, "detach") else value
                else:
                    self.hidden = self.hidden or numbered

    def called(self, layer: Any, arguments: Any, outputs: Any) -> None:
        name = self._layers.get(id(layer))
        if name is not None:
            if not self._observes:  # outputs of other layers
                self.offer(f"{name}/inputs", "layers", arguments)
            self.offer(f"{name}/outputs", "layers", outputs)
        elif layer is self._model:
            self.offer("predictions", "outputs", outputs)

    def averaged(self, metric: Any, value: Any) -> None:
        """Take the loss of the batch, which Keras logs as the mean since the epoch began."""
        name = str(metric.name)
        is_loss = self._observes and (name == "loss" or name.endswith("_loss"))
        if is_loss and name not in self.tensors and tuple(getattr(value, "shape", (1,))) == ():
            self.offer(name, "losses", value)

    def applied(self, optimizer: Any, gradients: Any, variables: Any) -> None:
        scale = getattr(optimizer, "dynamic_scale" if optimizer.built else "initial_scale", None)
        names = gradient_names(variables, self._model)
        for gradient, name in zip(gradients, names, strict=False):
            if gradient is not None and self._wants(name, "gradients"):
                dense = _dense(gradient)
                self.offer(name, "gradients", dense if scale is None else dense / scale)


def gradient_names(variables: Any, model: Any = None) -> list[str]:
    """`gradients/dense/kernelGrad` for each variable."""
    return [f"gradients/{path_of(variable, model)}Grad" for variable in variables]


def path_of(variable: Any, model: Any = None) -> str:
    """Return the path of a variable in its model: `dense/kernel`."""
    path = getattr(variable, "path", None)
    if not isinstance(path, str):
        return str(variable.name).removesuffix(":0")
    return path if model is None else path.removeprefix(f"{model.name}/")


@contextmanager
def collecting(collector: Collector) -> Iterator[None]:
    """Show the collector every layer that is called here, and every gradient that is applied."""
    before = getattr(_here, "collector", None)
    _here.collector = collector
    _watch(+1)
    try:
        yield
    finally:
        _watch(-1)
        _here.collector = before


def _watch(more: int) -> None:
    """Replace methods of layers and optimizers while anything collects, and restore them afterwards."""
    global _watching
    with _lock:
        _watching += more
        watched = _watching > 0
        keras.layers.Layer.__call__ = _call if watched else _layer_call
        keras.metrics.Mean.update_state = _update if watched else _update_mean
        for kind, apply in _appliers.items():
            kind.apply = _watching_applier(apply) if watched else apply


def _call(layer: Any, *args: Any, **kwargs: Any) -> Any:
    outputs = _layer_call(layer, *args, **kwargs)
    collector = getattr(_here, "collector", None)
    if collector is not None:
        collector.called(layer, args[:1] or list(kwargs.values())[:1], outputs)
    return outputs


def _update(metric: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    collector = getattr(_here, "collector", None)
    if collector is not None and type(metric) is keras.metrics.Mean:
        collector.averaged(metric, values)
    return _update_mean(metric, values, *args, **kwargs)


def _watching_applier(own: Callable[..., Any]) -> Callable[..., Any]:
    def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        collector = getattr(_here, "collector", None)
        if collector is not None:
            _here.collector = None  # an inner optimizer would offer the same
            variables = trainable_variables
            if variables is None:
                variables = optimizer._trainable_variables
            grads, variables = list(grads), list(variables)
            collector.applied(optimizer, grads, variables)
            trainable_variables = None if trainable_variables is None else variables
        try:
            return own(optimizer, grads, trainable_variables)
        finally:
            _here.collector = collector

    return apply


def _dense(gradient: Any) -> Any:
    """Return a gradient as one tensor: an embedding's consists of rows and their indices."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.convert_to_tensor(gradient)
    return keras.ops.convert_to_tensor(gradient)


def _graph() -> Any:
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _graph_of(value: Any) -> Any:
    if keras.backend.backend() != "tensorflow":
        return None
    try:
        return getattr(value, "graph", None)
    except AttributeError:  # an eager tensor has none
        return None
