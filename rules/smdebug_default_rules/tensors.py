"""The parameters of a step as one table: each with its gradient, its update, its layer and its optimizer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.rows import COLUMN, COLUMNS
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
from smdebug_default_rules.arrays import rounded, where

_OUTPUT = re.compile(r"(_output_\d+|/outputs(_\d+)?)$")
_LAST_AXIS = re.compile(r"(^|/)([a-z]+_)*(kernel|w)(:\d+)?$")
"""Weights whose last axis has the units, as Keras and libraries for JAX store them."""
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
NORMALISATIONS = frozenset(
    (
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "SyncBatchNorm",
        "LayerNorm",
        "GroupNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "RMSNorm",
        "LocalResponseNorm",
        "BatchNormalization",
        "LayerNormalization",
        "GroupNormalization",
        "UnitNormalization",
    )
)
RESOLUTIONS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""The relative distance between neighbouring numbers of a type."""


@dataclass(frozen=True)
class Modules:
    """The modules of the model, in network order."""

    root: str
    classes: Mapping[str, str]
    depends_on_mode: Mapping[str, bool]
    activations: Mapping[str, str] = field(default_factory=dict)
    """The function that a layer ends with, where layers have one, as those of Keras do."""

    @classmethod
    def of(cls, seen: ObservedStep) -> Modules:
        """The modules of the step, as its facts name them."""
        known = seen.shared_by_layout.get("modules")
        if known is None:
            rows = [row for row in seen.facts.get("modules") or () if len(row) >= 3]
            is_keras = "activations" in seen.facts
            known = cls(
                str(rows[0][0]) if rows and not is_keras else "",
                {str(row[0]): str(row[1]) for row in rows},
                {str(row[0]): bool(row[2]) for row in rows},
                dict(seen.facts.get("activations") or {}),
            )
            seen.shared_by_layout["modules"] = known
        return known

    @property
    def input(self) -> str:
        """The name of the model's first input: Keras calls it inputs."""
        return f"{self.root}_input_0" if self.root else "inputs"

    @property
    def output(self) -> str:
        """The name of the model's output: Keras calls it predictions."""
        return f"{self.root}_output_0" if self.root else "predictions"

    def layer_of(self, parameter: str) -> str:
        """The name of the module that a parameter belongs to."""
        layer = parameter.rpartition(".")[0]
        if not layer and "/" in parameter:  # `dense/weights/dense/kernel:0` of Keras, `dense/kernel`
            outer, _, path = parameter.rpartition("/weights/")
            layer = path.rpartition("/")[0]
            return outer if outer and layer not in self.classes else layer
        if not layer and (model := parameter.rpartition("_")[0]) in self.classes:
            return model  # one that is a layer itself
        if layer in self.classes:
            return layer
        short = layer.removeprefix(f"{self.root}_")
        return short if short in self.classes else layer or self.root

    def known_around(self, layer: str) -> str:
        """The layer, or the innermost one around it that is known; "" if there is none."""
        while layer not in self.classes:
            short = layer.removeprefix(f"{self.root}_")
            layer = short if short in self.classes else layer.rpartition(".")[0]
            if not layer:
                break
        return layer

    def layer_of_output(self, output: str) -> str:
        """The name of the module that an output belongs to."""
        layer = _OUTPUT.sub("", output)
        return layer.removeprefix("output/") or output

    def described(self, layer: str) -> str:
        """A layer with its class: `layer 3 (Linear)`; a parameter may belong to none that has a name."""
        if not layer:
            return "that layer"
        kind = self.classes.get(layer)
        return f"layer {layer} ({kind})" if kind and kind != layer else f"layer {layer}"


@dataclass(frozen=True)
class _Alignment:
    order: NDArray[np.int64] | None
    """The row of the statistics of each parameter; None if they are in network order themselves."""
    names: list[str]
    layers: list[str]
    classes: list[str]
    sizes: NDArray[np.int64]
    units: NDArray[np.int64]
    axes: NDArray[np.int64]
    is_float: Mask
    resolutions: Floats
    gradient_places: NDArray[np.int64] | None
    """The row of each parameter's gradient, -1 for none; None if they have the order of the parameters."""
    update_places: NDArray[np.int64] | None


@dataclass(frozen=True)
class Parameters:
    """The parameters of a step, a row each, in network order. Rows of NaN stand for what is missing."""

    names: Sequence[str]
    layers: Sequence[str]
    classes: Sequence[str]
    sizes: NDArray[np.int64]
    units: NDArray[np.int64]
    """How many units a weight has: the length of its first axis, or of the last of a `kernel`."""
    axes: NDArray[np.int64]
    resolutions: Floats
    """The relative distance of neighbouring numbers of the parameter's type: 2**-7 for bfloat16."""
    is_frozen: Mask
    owners: NDArray[np.int64]
    """The number of the optimizer that a parameter belongs to; -1 for none."""
    values: Floats
    gradients: Floats
    updates: Floats
    present: Mask
    has_whole_gradients: bool = True
    """Whether no gradient is a part of a sharded one, so that their norm is that of the model."""

    @classmethod
    def of(cls, seen: ObservedStep) -> Parameters | None:
        """The parameters of the step; None if their statistics were not saved."""
        if "parameters" not in seen.shared:
            seen.shared["parameters"] = _parameters(seen)
        found: Parameters | None = seen.shared["parameters"]
        return found

    def column(self, statistic: str) -> Floats:
        """That statistic of the parameters."""
        return self.values[:, COLUMN[statistic]]

    def gradient(self, statistic: str) -> Floats:
        """That statistic of their gradients."""
        return self.gradients[:, COLUMN[statistic]]

    def update(self, statistic: str) -> Floats:
        """That statistic of their updates."""
        return self.updates[:, COLUMN[statistic]]

    @cached_property
    def has_gradient(self) -> Mask:
        """Which have a gradient that is not all zero."""
        gradient = self.gradient("abs_mean")
        found: Mask = (gradient > 0) | (self.gradient("non_finite") > 0)
        return found

    @cached_property
    def largest(self) -> Floats:
        """The largest value of each, without its sign."""
        found: Floats = np.maximum(self.column("max"), -self.column("min"))
        return found

    @cached_property
    def largest_gradient(self) -> Floats:
        """The largest value of their gradients, without its sign."""
        found: Floats = np.maximum(self.gradient("max"), -self.gradient("min"))
        return found

    @cached_property
    def gradient_norm(self) -> float:
        """The norm of all gradients that are finite, taken together; NaN if there are none, or only parts."""
        if not self.has_whole_gradients:
            return math.nan
        rms = self.gradient("rms").astype(np.float64)
        known = np.isfinite(rms)
        return float(np.sqrt(np.sum(rms[known] ** 2 * self.sizes[known]))) if known.any() else math.nan

    @cached_property
    def is_weight(self) -> Mask:
        """Which are matrices or more: weights, not biases or scales."""
        found: Mask = self.axes >= 2
        return found


def usual_sizes(table: Parameters) -> Floats:
    """A tenth of the size that weights begin with, where all inputs of a unit together have a gain of 1."""
    root = np.sqrt(np.maximum(table.units, 1) / np.maximum(table.sizes, 1))
    sizes: Floats = (0.1 * root).astype(np.float32)
    return sizes


def first_sizes(table: Parameters, chosen: Mask) -> dict[str, float]:
    """The root mean square of each chosen parameter, to keep for later steps."""
    places = where(chosen)
    sizes = rounded(table.column("rms")[places].tolist())
    return dict(zip([table.names[place] for place in places], sizes, strict=True))


def _parameters(seen: ObservedStep) -> Parameters | None:
    matrix = seen.statistics("parameters")
    if matrix is None:
        return None
    # Of sharded parameters the shapes of the wholes are known at the steps at which all parts are there.
    alignment = f"alignment of wholes {sorted(matrix.combined)}" if matrix.combined else "alignment"
    aligned = seen.shared_by_layout.get(alignment)
    if aligned is None:
        aligned = seen.shared_by_layout[alignment] = _alignment(seen, matrix)
    owned = seen.shared_by_layout.get("owners")
    if owned is None:
        owned = seen.shared_by_layout["owners"] = _owners(seen.facts, aligned.names)
    frozen = seen.shared_by_layout.get("frozen")
    if frozen is None:
        names = set(seen.facts.get("frozen") or ())
        frozen = np.array([name in names for name in aligned.names], bool)
        frozen = seen.shared_by_layout["frozen"] = frozen | ~aligned.is_float
    gradients = seen.statistics("gradients")
    values = matrix.values if aligned.order is None else matrix.values[aligned.order]
    return Parameters(
        names=aligned.names,
        layers=aligned.layers,
        classes=aligned.classes,
        sizes=aligned.sizes,
        units=aligned.units,
        axes=aligned.axes,
        resolutions=aligned.resolutions,
        is_frozen=frozen,
        owners=owned,
        values=values,
        gradients=_placed(gradients, aligned.gradient_places, len(aligned.names)),
        updates=_placed(seen.statistics("updates"), aligned.update_places, len(aligned.names)),
        present=values[:, 0] > 0,
        has_whole_gradients=gradients is None or not gradients.parts,
    )


def _alignment(seen: ObservedStep, matrix: StatisticsMatrix) -> _Alignment:
    modules = Modules.of(seen)
    order = _network_order([modules.layer_of(name) for name in matrix.names], modules)
    tensors = matrix.tensors if order is None else [matrix.tensors[place] for place in order]
    names = [tensor.name for tensor in tensors]
    layers = [modules.layer_of(name) for name in names]
    layout = seen.layout
    return _Alignment(
        order,
        names,
        layers,
        [modules.classes.get(layer, "") for layer in layers],
        np.array([tensor.size for tensor in tensors]),
        np.array([_units(tensor.name, tensor.shape) for tensor in tensors]),
        np.array([len(tensor.shape) for tensor in tensors]),
        np.array(["float" in tensor.dtype for tensor in tensors], bool),
        np.array([RESOLUTIONS.get(tensor.dtype, 2.0**-23) for tensor in tensors], np.float32),
        _places(_gradient_names(seen, names), [] if layout is None else layout.names("gradients")),
        _places(
            [f"update/{name}" for name in names],
            [] if layout is None else layout.names("updates"),
        ),
    )


def _network_order(layers: Sequence[str], modules: Modules) -> NDArray[np.int64] | None:
    """Where the parameters are, by the order of their layers: large tensors are measured after small ones."""
    known = {layer: place for place, layer in enumerate(modules.classes)}
    places = [known.get(modules.known_around(layer), -1) for layer in layers]
    if -1 in places or places == sorted(places):
        return None
    return np.argsort(places, kind="stable")


def _units(name: str, shape: Sequence[int]) -> int:
    if not shape:
        return 1
    return shape[-1] if _LAST_AXIS.search(name) else shape[0]


def _gradient_names(seen: ObservedStep, names: Sequence[str]) -> list[str]:
    """The gradient of each parameter: Keras names them by paths of their own."""
    known = seen.facts.get("gradient_names") or {}
    return [str(known.get(name) or f"gradient/{name}") for name in names]


def _places(names: Sequence[str], rows: Sequence[str]) -> NDArray[np.int64] | None:
    if list(names) == list(rows):
        return None
    places = {name: place for place, name in enumerate(rows)}
    return np.array([places.get(name, -1) for name in names], np.int64)


def _placed(matrix: StatisticsMatrix | None, places: NDArray[np.int64] | None, parameters: int) -> Floats:
    if matrix is None or not len(matrix):
        return np.full((parameters, len(COLUMNS)), np.nan, np.float32)
    if places is None:
        return matrix.values
    found = matrix.values[places]
    found[places < 0] = np.nan
    return found


def _owners(facts: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.int64]:
    owner: dict[str, int] = {}
    for number, optimizer in enumerate(facts.get("optimizers") or ()):
        for group in optimizer.get("groups") or ():
            owner.update(dict.fromkeys(group.get("parameters") or (), number))
    return np.array([owner.get(name, -1) for name in names], np.int64)
