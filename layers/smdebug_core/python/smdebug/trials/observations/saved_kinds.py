"""What the tensors of a run are, by its collections and their names: for runs that saved chosen tensors.

A run of the default plan names the kind of each row. Others have the names that the hooks of the old library
gave: `gradient/…`, `…_output_0` of PyTorch, `…/outputs` and `gradients/…Grad` of Keras.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from smdebug.config.keys import CollectionKeys
from smdebug.files.names import OBSERVATIONS
from smdebug.files.observations import GRADIENTS, INPUTS, OUTPUTS, PARAMETERS

_GRADIENT = re.compile(r"^gradients?/")
_OF_KERAS = re.compile(r"^gradients/(.+?)Grad(_\d+)?$")
_OUTPUT = re.compile(r"(_output_\d+|/outputs(_\d+)?(:\d+)?)$")
_INPUT = re.compile(r"(_input_\d+|/inputs(_\d+)?(:\d+)?)$")
_NUMBER = re.compile(r":\d+$")
_LOSS = re.compile(r"loss", re.IGNORECASE)
_CLASSES = {
    CollectionKeys.RELU_OUTPUT: "ReLU",
    CollectionKeys.SIGMOID_OUTPUT: "Sigmoid",
    CollectionKeys.TANH_OUTPUT: "Tanh",
}
_IN_NAMES = re.compile(r"(?:^|[._/\d])(relu|sigmoid|tanh)\d*$", re.IGNORECASE)
_NAMED = {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh"}


class Sorted(NamedTuple):
    """The tensors of a step, by kind, in the order in which they were saved."""

    kinds: Mapping[str, tuple[str, ...]]
    scalars: tuple[str, ...]
    """Losses, metrics and scalars of the user's."""
    root: str
    """The name of the model; empty if it is not known."""


@dataclass(frozen=True)
class SavedKinds:
    """Tells the kinds of saved tensors apart, given the members of the run's collections."""

    members: Mapping[str, Collection[str]]

    def sort(self, names: Iterable[str]) -> Sorted:
        """Sort the tensors of a step."""
        names = [name for name in names if not name.startswith(OBSERVATIONS)]
        found: dict[str, list[str]] = {kind: [] for kind in (PARAMETERS, GRADIENTS, INPUTS, OUTPUTS)}
        scalars, others = [], []
        for name in names:
            if self._is(CollectionKeys.GRADIENTS, name) or _GRADIENT.match(name):
                found[GRADIENTS].append(name)
            elif self._is_scalar(name):
                scalars.append(name)
            else:
                others.append(name)
        trained = {parameter_of(name) for name in (*found[GRADIENTS], *self.gradients)}
        is_parameter = {
            name: plain_name(name) in trained
            or self._is(CollectionKeys.WEIGHTS, name)
            or self._is(CollectionKeys.BIASES, name)
            for name in others
        }
        found[PARAMETERS] = [name for name in others if is_parameter[name]]
        root = self.root(others, found[PARAMETERS])
        for name in others:
            if is_parameter[name]:
                continue
            if _LOSS.search(name) and not _INPUT.search(name):
                scalars.append(name)
            elif self._is_batch(name, root):
                found[INPUTS].append(name)
            elif _OUTPUT.search(name) or self._is(CollectionKeys.OUTPUTS, name):
                found[OUTPUTS].append(name)
        kinds = {kind: tuple(of_kind) for kind, of_kind in found.items() if of_kind}
        return Sorted(kinds, tuple(scalars), root)

    def root(self, names: Iterable[str], parameters: Collection[str]) -> str:
        """Return the name of the model, as its output has it: all parameters begin with it; or nothing."""
        for name in names:
            layer = name.removesuffix("_output_0")
            if layer != name and parameters and all(each.startswith(f"{layer}_") for each in parameters):
                return layer
        return ""

    def layer_class(self, output: str) -> str:
        """Return the class of the layer with that output, where collections or its name tell; or nothing."""
        for collection, kind in _CLASSES.items():
            if self._is(collection, output):
                return kind
        found = _IN_NAMES.search(_OUTPUT.sub("", output))
        return _NAMED[found[1].lower()] if found else ""

    @property
    def gradients(self) -> Collection[str]:
        """The gradients that the run says it saves, at whatever step."""
        return self.members.get(CollectionKeys.GRADIENTS, ())

    @property
    def losses(self) -> Collection[str]:
        """The tensors that the run says are losses."""
        return self.members.get(CollectionKeys.LOSSES, ())

    def _is(self, collection: str, name: str) -> bool:
        return name in self.members.get(collection, ())

    def _is_scalar(self, name: str) -> bool:
        collections = (CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS)
        return name.startswith("scalar/") or any(self._is(each, name) for each in collections)

    def _is_batch(self, name: str, root: str) -> bool:
        """Whether it is an input of the model, not of a layer in it."""
        if self._is(CollectionKeys.INPUTS, name):
            return True
        return bool(root and _INPUT.search(name) and name.startswith(f"{root}_input_"))


def parameter_of(gradient: str) -> str:
    """Return the plain name of the parameter that a gradient belongs to."""
    found = _OF_KERAS.match(gradient)
    return plain_name(found[1] if found else _GRADIENT.sub("", gradient, count=1))


def plain_name(parameter: str) -> str:
    """Return a parameter's name as its gradient has it: `dense/kernel` of `dense/weights/dense/kernel:0`."""
    return _NUMBER.sub("", parameter.rpartition("/weights/")[2])
