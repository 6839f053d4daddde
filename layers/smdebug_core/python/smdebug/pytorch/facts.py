"""Facts of a training step that no tensor shows: modes, optimizers, the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from smdebug.pytorch.loss_graph import LossGraph, LossTerm

MODE_DEPENDENT = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.dropout._DropoutNd,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.RNNBase,
)
"""Modules whose result depends on `training`, unless their dropout is 0."""
MAX_NAMED = 50
"""How many modules or parameters a fact names at most; it counts the others."""


Name = Callable[[nn.Module], str | None]


def modules_of(model: nn.Module) -> Iterator[tuple[nn.Module, list[Any]]]:
    """Each module of a model in network order, with its class and whether `training` changes its result."""
    for module in model.modules():
        yield module, [type(module).__name__, depends_on_mode(module)]


def depends_on_mode(module: nn.Module) -> bool:
    """Whether the module's own result depends on its `training` flag."""
    if not isinstance(module, MODE_DEPENDENT):
        return False
    rate = getattr(module, "p", getattr(module, "dropout", None))
    return not (isinstance(rate, int | float) and rate == 0)


def mode_facts(model: nn.Module, name_of: Name) -> dict[str, Any]:
    """In which mode the model is, and which of its modules that depend on it are in the other one."""
    others = [
        name_of(module) or type(module).__name__
        for module in model.modules()
        if module.training is not model.training and depends_on_mode(module)
    ]
    return {
        "training": model.training,
        "gradients": torch.is_grad_enabled(),
        "other_mode": others[:MAX_NAMED],
    }


def parameter_facts(parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Any]:
    """Which parameters are frozen."""
    frozen = [name for name, parameter in parameters if not parameter.requires_grad]
    return {"frozen": frozen}


def optimizer_facts(
    optimizers: Iterable[torch.optim.Optimizer], names: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The class of each optimizer, and of each of its groups the parameters that belong to known models."""
    return [
        {"class": type(optimizer).__name__, "groups": _groups(optimizer, names)}
        for optimizer in optimizers
    ]


def _groups(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> list[dict[str, Any]]:
    groups = []
    for group in optimizer.param_groups:
        known = [names[id(p)] for p in group["params"] if id(p) in names]
        groups.append({"parameters": known, "others": len(group["params"]) - len(known)})
    return groups


def learning_rates(optimizer: torch.optim.Optimizer) -> list[Any]:
    """The learning rate of each group; a tensor is returned as it is, to be read later."""
    return [group.get("lr") for group in optimizer.param_groups]


def batch_facts(inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The size of the batch, and how many of its rows are distinct."""
    given = next((tensor for tensor in inputs if tensor.dim()), None)
    if given is None:
        return {}
    return {
        "shapes": [list(tensor.shape) for tensor in inputs[:8]],
        "distinct_rows": _distinct(given),
    }


def _distinct(batch: torch.Tensor) -> Callable[[], int | None]:
    """Count the distinct rows of a batch, later: on a GPU to count now would be to wait."""
    rows = batch.detach()
    if rows.layout is not torch.strided or rows.is_complex() or not 1 < len(rows) <= 1 << 16:
        return lambda: None
    rows = rows.reshape(len(rows), -1)
    if not rows.shape[1]:
        return lambda: None
    # Rows that are equal have equal projections, to the last bit, as the same operations make them.
    generator = torch.Generator().manual_seed(0)
    factors = torch.rand(rows.shape[1], 1, generator=generator, dtype=torch.float64) + 0.5
    projections = (rows.double() * factors.to(rows.device).T).sum(1)
    return lambda: int(torch.unique(projections).numel())


def loss_facts(graph: LossGraph) -> dict[str, Any]:
    """What a loss was computed from."""
    return {
        "factor": graph.factor,
        "broadcast": None if graph.broadcast is None else list(graph.broadcast),
        "terms": [_term_facts(term) for term in graph.terms],
    }


def _term_facts(term: LossTerm) -> dict[str, Any]:
    facts = {
        "criterion": term.criterion,
        "given": term.given,
        "rows": term.rows,
        "classes": term.classes,
    }
    if term.targets is not None and term.targets.is_cpu and term.targets.numel():
        counts = torch.bincount(term.targets.reshape(-1).clamp(min=0), minlength=1)
        facts["targets"] = int(term.targets.numel())
        facts["classes_seen"] = int((counts > 0).sum())
        facts["largest_class"] = int(counts.argmax())
        facts["largest_share"] = float(counts.max() / counts.sum())
    return facts
