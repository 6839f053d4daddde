"""Collections of activations, found by the class of a module: `relu_output`, `tanh_input` and so on.

In `nn.Sequential` an activation is called `1`, and its output `1_output_0`. For collections it is called
`1_relu_output_0` as well, so that the pattern `.*relu_output` selects it. No tensor is renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from torch import nn

from smdebug.config.collection_manager import CollectionManager
from smdebug.config.patterns import searcher
from smdebug.pytorch.modules.names import Layer, unwrapped

CLASSES: dict[str, tuple[type[nn.Module], ...]] = {
    "relu": (nn.ReLU, nn.ReLU6),
    "tanh": (nn.Tanh,),
    "sigmoid": (nn.Sigmoid,),
}
"""The activations that rules distinguish. PyTorch's ReLU6 is not a subclass of ReLU."""


class ActivationTensor(NamedTuple):
    """The input or output of an activation."""

    name: str
    collection: str
    """The collection of all such tensors, such as `relu_output`."""
    aliases: tuple[str, ...]
    """The other name that patterns are compared with: the same with the class in it."""


def activation_tensors(layers: Iterable[Layer]) -> Iterator[ActivationTensor]:
    """Yield the input and the output of each activation among the layers of a model."""
    for layer in layers:
        module = unwrapped(layer.module)
        for kind, classes in CLASSES.items():
            if isinstance(module, classes):
                for end in ("input", "output"):
                    aliases = (
                        f"{layer.name}_{kind}_{end}_0",
                        f"{layer.name}_{classes[0].__name__}_{end}_0",
                    )
                    yield ActivationTensor(f"{layer.name}_{end}_0", f"{kind}_{end}", aliases)


def add_to_collections(
    manager: CollectionManager,
    tensors: Iterable[ActivationTensor],
    included: Iterable[str],
    assign: Callable[[str, str], None],
) -> None:
    """Add the tensors to the collections that are named after them or whose patterns match an alias.

    Those that are `included` need not exist before. `assign` adds a tensor to a collection whose members
    are final, because the run has begun.
    """
    known = list(tensors)
    for name in {tensor.collection for tensor in known}.intersection(included):
        manager.get(name)
    for collection in list(manager.get_collections().values()) if known else ():
        searches = [searcher(pattern) for pattern in collection.include_regex]
        for tensor in known:
            is_named = collection.name == tensor.collection and not searches
            if is_named or any(search(alias) for search in searches for alias in tensor.aliases):
                collection.add_tensor_name(tensor.name)
                assign(tensor.name, collection.name)


def list_for_readers(manager: CollectionManager, tensors: Iterable[ActivationTensor]) -> None:
    """Add the missing collections, which readers of the run need; what is saved is already decided."""
    made = set(manager.get_collections())
    for tensor in tensors:
        if tensor.collection not in made:
            manager.get(tensor.collection).add_tensor_name(tensor.name)
