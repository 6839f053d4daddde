"""The weights by which a loader draws the rows of its data, as `WeightedRandomSampler` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import WeightedRandomSampler

from smdebug.pytorch.listening.passes import PASSES

_MOST_WEIGHTS, _MOST_KINDS, _FIRST = 1 << 20, 64, 4096


class Sampling:
    """Looks once at the sampler of each loader over which a training goes."""

    def __init__(self, leave_out: Callable[[Exception], object]) -> None:
        self._leave_out = leave_out
        self._passes_seen = 0
        self._known: tuple[Any, Any] = (None, None)

    def facts(self) -> dict[str, Any] | None:
        """Return what is known of a sampler that was not looked at yet."""
        if PASSES.count == self._passes_seen:
            return None
        try:
            return self._facts()
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._leave_out(error)
            return None

    def _facts(self) -> dict[str, Any] | None:
        passes, self._passes_seen = PASSES.going_on(self._passes_seen), PASSES.count
        for loader in [each.loader() for each in passes]:
            sampler = None if loader is None else _sampler_of(loader)
            if sampler is not None and self._is_new(sampler):
                noted = _weights_of(sampler, loader)
                return None if noted is None else {"sampler": noted}
        return None

    def _is_new(self, sampler: WeightedRandomSampler) -> bool:
        known, sampler_weights = self._known, sampler.weights
        self._known = sampler, sampler_weights
        return known[0] is not sampler or known[1] is not sampler_weights


def _sampler_of(loader: Any) -> WeightedRandomSampler | None:
    """The sampler that draws single rows with replacement, by weights."""
    for sampler in (
        getattr(loader, "sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
    ):
        if isinstance(sampler, WeightedRandomSampler) and sampler.replacement:
            return sampler
    return None


def _weights_of(sampler: WeightedRandomSampler, loader: Any) -> dict[str, Any] | None:
    weights: Any = sampler.weights
    if not isinstance(weights, torch.Tensor) or weights.dim() != 1 or not 0 < len(weights) <= _MOST_WEIGHTS:
        return None
    rows = _length_of(loader.dataset)
    if rows is None:
        return None
    noted = {"rows": rows, "weights": len(weights)}
    batch = getattr(loader, "batch_size", None) or getattr(loader.batch_sampler, "batch_size", None)
    if isinstance(batch, int):
        noted["batch"] = batch
    if len(weights[:_FIRST].unique()) > _MOST_KINDS:
        return noted
    kinds, counts = weights.unique(return_counts=True)
    if len(kinds) > _MOST_KINDS:
        return noted
    return {**noted, "kinds": [[*kind] for kind in zip(kinds.tolist(), counts.tolist(), strict=True)]}


def _length_of(data: Any) -> int | None:
    """How many rows there are; None where nobody knows."""
    try:
        return len(data)
    except TypeError:
        return None
