"""What a saved step needs to know of the models, worked out once for as long as they stay the same.

Modules and parameters may be replaced between any two steps. Checking whether any was takes a walk over all
of them, a tenth of the time of working out their names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ref

from torch import nn

from smdebug.pytorch.modules.models import Models
from smdebug.pytorch.modules.names import Layer, name_layers, name_of, parameters_of, unwrapped
from smdebug.pytorch.observing import facts
from smdebug.pytorch.observing.unregistered import Unregistered

_Kept = list[Callable[[], Any]]


class WatchedParameter(NamedTuple):
    """A parameter of a model, with the names of its tensors."""

    name: str
    gradient: str
    parameter: ref[nn.Parameter]


class Structure:
    """The layers and parameters of some models."""

    def __init__(self, models: Models):
        known = list(models)
        layers = [layer for registered in known for layer in models.layers_of(*registered)]
        name_layers(layers)  # one may have replaced another since the model was registered
        self._layers = [(layer.name, ref(layer.module), layer.is_in_graph) for layer in layers]
        self._parameters = [
            WatchedParameter(name, f"gradient/{name}", ref(parameter))
            for model, root in known
            for name, parameter in parameters_of(unwrapped(model), root)
        ]
        self.names = tuple(known.name for known in self._parameters)
        """The names of the parameters, and in the same order:"""
        self.gradient_names = tuple(known.gradient for known in self._parameters)
        self._references = [known.parameter for known in self._parameters]
        self.roots = frozenset(root for _, root in known)
        self._models = [(root, ref(unwrapped(model))) for model, root in known]
        self.modules = [
            [name_of(module) or root, *rest]
            for model, root in known
            for module, rest in facts.modules_of(model)
        ]
        """Each module's name, its class, and whether its mode changes its result."""
        self.module_ids = frozenset(id(module) for model, _ in known for module in model.modules())
        """The modules, while this is the structure of the models."""
        self.unregistered = Unregistered((unwrapped(model), root) for model, root in known)
        modules = (module for model, _ in known for module in model.modules())
        paddings = {module.padding_idx for module in modules if isinstance(module, nn.Embedding)} - {None}
        self.padding_id = paddings.pop() if len(paddings) == 1 else None
        """The id that the embeddings of tokens have for padding, if they have one."""
        first = known[0][0].modules() if known else ()
        self._of_mode = [ref(module) for module in first if isinstance(module, facts.MODE_DEPENDENT)]

    @property
    def layers(self) -> list[Layer]:
        """The layers that still exist."""
        return [
            Layer(name, module, is_in_graph)
            for name, known, is_in_graph in self._layers
            if (module := known()) is not None
        ]

    @property
    def models(self) -> list[tuple[str, nn.Module]]:
        """The whole models that still exist, each with its name."""
        return [(root, model) for root, known in self._models if (model := known()) is not None]

    def values(self) -> list[nn.Parameter]:
        """The parameters, in the order of their names, while this is the structure of the models."""
        values: list[Any] = list(map(operator.call, self._references))
        return values

    @property
    def mode_dependent(self) -> list[nn.Module]:
        """Modules of the first model whose result may depend on their mode, as far as they still exist."""
        return [module for known in self._of_mode if (module := known()) is not None]


class KnownStructure:
    """The structure of a hook's models, worked out again when they have changed."""

    def __init__(self, models: Models):
        self._models = models
        self._structure: Structure | None = None
        self._kept: _Kept = []
        self._texts: list[Any] = []

    def now(self) -> Structure:
        """Return the structure as it is now. The same object means that nothing has changed."""
        parts: list[Any] = []
        texts: list[Any] = []
        for model, root in self._models:
            texts.append(root)
            _collect(model, parts, texts)
        if self._structure is None or texts != self._texts or not _are(self._kept, parts):
            self._kept = [ref(part) for part in parts]
            self._texts = texts
            self._structure = Structure(self._models)
        return self._structure


def _are(kept: _Kept, parts: Sequence[Any]) -> bool:
    return len(kept) == len(parts) and all(map(operator.is_, map(operator.call, kept), parts))


def _collect(model: nn.Module, parts: list[Any], texts: list[Any]) -> None:
    """Add every module and parameter to `parts`, and what else decides on names to `texts`."""
    modules: list[nn.Module] = [model]  # it grows
    seen = {id(model)}
    for module in modules:
        texts += type(module), module._compiled_call_impl is None
        for parameter in module._parameters.values():
            if parameter is not None:
                parts.append(parameter)  # noqa: PERF401 - a comprehension is a call per module
        for name, child in module._modules.items():
            if child is not None:
                texts.append(name)
                if id(child) not in seen:
                    seen.add(id(child))
                    modules.append(child)
    parts += modules
