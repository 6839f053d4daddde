"""The order of layers in a network, from input to output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smdebug.diagnosis.places import layer_of
from smdebug.files.observations import ObservationLayout


def modules_of(layout: ObservationLayout) -> list[str]:
    """Return the names of the modules, in the order in which the model has them."""
    modules = layout.facts.get("modules")
    rows = modules if isinstance(modules, list) else []
    return [str(row[0]) for row in rows if isinstance(row, list) and row]


def layers_of(layout: ObservationLayout | None) -> dict[str, int]:
    """Return the place of each layer: as its output was computed, else as the model names it."""
    if layout is None:
        return {}
    root = next(iter(modules_of(layout)), "")
    parameters = [module_in(name, root) for name in layout.names("parameters")]
    return _merged(list(computed_layers(layout)), list(dict.fromkeys(parameters)))


def computed_layers(layout: ObservationLayout) -> tuple[str, ...]:
    """Return the layers whose outputs were observed, as they were computed."""
    return tuple(dict.fromkeys(layer_of(name) for name in layout.names("outputs")))


def module_in(tensor: str, root: str) -> str:
    """Return the module in a tensor's name, without the class of the model: `fc1` of `Net_fc1.weight`."""
    layer = layer_of(tensor)
    return layer.removeprefix(f"{root}_") if root and layer != root else layer


def in_order(names: Sequence[str], layers: Mapping[str, int], root: str = "") -> list[int]:
    """Return the places of `names`, sorted by layer from input to output; unknown layers stay behind."""
    last = len(layers)
    keys: list[Any] = []
    for place, name in enumerate(names):
        keys.append((layers.get(module_in(name, root), last), place))
    return [place for _, place in sorted(keys)]


def _merged(first: list[str], second: list[str]) -> dict[str, int]:
    """Return one order of both lists: a layer that is only in the second follows its predecessor there."""
    merged = list(first)
    known = set(first)
    before = -1
    for name in second:
        if name in known:
            before = merged.index(name)
            continue
        before += 1
        merged.insert(before, name)
        known.add(name)
    return {name: place for place, name in enumerate(merged)}
