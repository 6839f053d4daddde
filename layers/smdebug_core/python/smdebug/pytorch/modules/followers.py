"""How fast a model beside the trained one follows it, as a teacher does that is a mean of its weights.

From one call to a later one, with an update of the trained weights in between, a mean moves the same share of
the way to the trained weights in all of its values: 0.01 of it where 0.99 is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from smdebug.pytorch.tensors.arrays import is_plain
from smdebug.pytorch.tensors.on_device import fetched

MOST_MEASURED = 64
"""At so many saved steps the share is measured: by then it is known."""
EXACT = 0.01
"""A mean lies so near to the way from where it was to the trained weights, as a share of that way."""
_VALUES, _MOST_COMPARED = 4, 4

Named = Sequence[tuple[str, nn.Parameter]]


class Followers:
    """Measures how fast one model follows the trained one, from a saved step to the call after it."""

    def __init__(self) -> None:
        self._model: ref[nn.Module] | None = None
        self._trained: list[tuple[str, ref[nn.Parameter]]] = []
        self._compared: Sequence[int] = ()
        self._place = 0
        self._before: torch.Tensor | None = None
        """Its values and those of the trained model, at the first call since the last saved step."""
        self._version = 0
        """What the trained parameters' counter was then."""
        self._measured: Callable[[], dict[str, Any] | None] | None = None
        self._count = 0

    @property
    def model(self) -> nn.Module | None:
        """The model that may be a mean; None if there is none, or enough is known of it."""
        return None if self._model is None or self._count >= MOST_MEASURED else self._model()

    def begin_step(
        self, parameters: Named, *, is_searched: bool
    ) -> Callable[[], dict[str, Any] | None] | None:
        """Begin a saved step; return what was measured since the one before."""
        if is_searched or self.model is not None:
            self._trained = [(name, ref(each)) for name, each in parameters if each.requires_grad]
        measured, self._measured, self._before = self._measured, None, None
        return measured

    def consider(self, module: nn.Module) -> bool:
        """Note a module beside the model if it has the shapes of trained parameters in a row."""
        own = [*module.parameters()]
        if self._model is not None or len(own) < 2 or not all(map(is_plain, own)):
            return False
        shapes = [parameter.shape for parameter in own]
        trained = [None if (known := each()) is None else known.shape for _, each in self._trained]
        for begin in range(len(trained) - len(shapes) + 1):
            if trained[begin : begin + len(shapes)] == shapes:
                self._model, self._place = ref(module), begin
                self._compared = range(0, len(own), -(-len(own) // _MOST_COMPARED))
                return True
        return False

    def called(self) -> bool:
        """Compare the model with the trained one before it is called; return whether that was enough."""
        model = None if self._model is None else self._model()
        theirs = [each() for _, each in self._trained[self._place :]]
        own = [] if model is None else [*model.parameters()]
        if not own or len(theirs) < len(own):
            return True
        trained = [theirs[at] for at in self._compared]
        if any(each is None or not is_plain(each) for each in trained):
            return True
        version = sum(each._version for each in trained if each is not None)
        if self._before is not None and version == self._version:
            return False
        now = torch.cat([*(_some(own[at]) for at in self._compared), *map(_some, trained)])
        if self._before is None:
            self._before, self._version = now, version
            return False
        both = torch.cat([self._before, now])
        self._before = None
        self._count += 1
        read = fetched(both) if both.is_cuda else both.cpu().numpy
        facts = {"model": type(model).__name__, "of": self._trained[self._place][0]}
        self._measured = lambda: _measured(facts, np.asarray(read(), np.float64))
        return True


def _measured(facts: dict[str, Any], values: NDArray[np.float64]) -> dict[str, Any] | None:
    """Return which share of the way to the trained values was made; None if these do not follow as a mean."""
    before, trained_before, after, trained = values.reshape(4, -1)
    for target in (trained, trained_before):
        way, moved = target - before, after - before
        length = float(way @ way)
        if not length or not np.isfinite(values).all():
            continue
        share = float(moved @ way) / length
        if np.abs(moved - share * way).max() <= EXACT * np.abs(way).max():
            return {**facts, "share": share, "is_same": bool((after == target).all())}
    return None


def _some(parameter: Any) -> torch.Tensor:
    values: torch.Tensor = parameter.detach().reshape(-1)[:_VALUES].float()
    return values.clone()
