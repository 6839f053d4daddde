"""Facts of a training step that no tensor shows: modes, optimizers, the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any
from weakref import ref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from smdebug.numbers.batches import row_digests
from smdebug.pytorch.observing.optimizer_state import OptimizerState
from smdebug.pytorch.tensors.on_device import fetched
from smdebug.pytorch.tensors.rows import places_on

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
_MOST_COMPARED = 1024
_MOST_ARGUMENTS = 8


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


def mode_facts(model: nn.Module, name_of: Name, modules: Iterable[nn.Module] | None = None) -> dict[str, Any]:
    """In which mode the model is, and which of its modules that depend on it are in the other one.

    `modules` are those that may depend on it, where they are known.
    """
    training = model.training
    others = [
        name_of(module) or type(module).__name__
        for module in (model.modules() if modules is None else modules)
        if module.training is not training and depends_on_mode(module)
    ]
    return {
        "training": training,
        "gradients": torch.is_grad_enabled(),
        "other_mode": others[:MAX_NAMED],
    }


def input_facts(model: nn.Module | None) -> dict[str, Any]:
    """What the model calls its inputs; nothing if it takes any number of them."""
    code = getattr(getattr(type(model), "forward", None), "__code__", None)
    names = [] if code is None else list(code.co_varnames[1 : code.co_argcount])
    return {"input_names": names[:_MOST_ARGUMENTS]} if names else {}


def autocast_facts(device: str) -> dict[str, Any]:
    """The type that autocast declares for this device; nothing if it is off."""
    try:
        if hasattr(torch, "get_autocast_dtype"):
            declared = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device)
        elif device == "cpu":  # before PyTorch 2.4 each device had functions of its own
            declared = torch.is_autocast_cpu_enabled() and torch.get_autocast_cpu_dtype()
        else:
            declared = torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype()
    except (AttributeError, TypeError, RuntimeError):  # a device without autocast
        return {}
    return {"autocast": str(declared).removeprefix("torch.")} if declared else {}


def parameter_facts(parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Any]:
    """Which parameters are frozen."""
    frozen = [name for name, parameter in parameters if not parameter.requires_grad]
    return {"frozen": frozen}


def optimizer_facts(
    optimizers: Iterable[tuple[ref[torch.optim.Optimizer], OptimizerState]], names: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The class and number of each optimizer, and the parameters of known models in each group."""
    noted = []
    for known, state in optimizers:
        if (optimizer := known()) is None:
            continue
        noted.append(
            {
                "class": type(optimizer).__name__,
                "number": state.number,
                "groups": _groups(optimizer, names),
            }
        )
        package = type(optimizer).__module__.partition(".")[0]
        if package != "torch":  # of the same name, it may work otherwise
            noted[-1]["package"] = package
        if state.updates_before is not None:
            noted[-1]["updates_before"] = state.updates_before
    return noted


def _groups(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> list[dict[str, Any]]:
    groups = []
    for group in optimizer.param_groups:
        known = [names[id(p)] for p in group["params"] if id(p) in names]
        noted: dict[str, Any] = {"parameters": known, "others": len(group["params"]) - len(known)}
        asked = group.get("initial_lr")  # what a scheduler scales, as the optimizer was given it
        if isinstance(asked, int | float):
            noted["asked_rate"] = float(asked)
        momentum = group.get("momentum")
        if isinstance(momentum, int | float) and momentum > 0 and not group.get("dampening"):
            noted["momentum"] = float(momentum)
        decay = group.get("weight_decay")
        if isinstance(decay, int | float) and decay > 0:
            noted["weight_decay"] = float(decay)
            if group.get("decoupled_weight_decay"):
                noted["decoupled"] = True
        groups.append(noted)
    return groups


def batch_facts(inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The size of the batch, how many of its rows are distinct, and digests of them."""
    given = next((tensor for tensor in inputs if tensor.dim()), None)
    if given is None:
        return {}
    projections = cache(_projections(given))
    return {
        "shapes": [list(tensor.shape) for tensor in inputs[:8]],
        "distinct_rows": lambda: _distinct_values(projections()),
        "row_digests": lambda: _digests(projections()),
    }


def _projections(batch: torch.Tensor) -> Callable[[], NDArray[np.float64] | None]:
    """Compute a number for each row of a batch, later: on a GPU, reading it now would wait for it.

    Rows that are equal have equal numbers. Of long rows `_MOST_COMPARED` values are compared.
    """
    rows = batch.detach()  # so that nothing here is part of a graph
    count = rows.shape[0]
    if rows.layout is not torch.strided or rows.is_complex() or not 1 < count <= 1 << 16:
        return lambda: None
    if rows.dim() != 2:
        rows = rows.reshape(count, -1)
    length = rows.shape[1]
    if not length:
        return lambda: None
    compared = rows
    if length > _MOST_COMPARED:
        compared = rows.index_select(1, places_on(rows.device, length, _MOST_COMPARED))
    if rows.is_cpu:
        kept = compared.clone(memory_format=torch.contiguous_format) if compared is rows else compared
        return lambda: _projected(kept.double().numpy())
    # Rows that are equal have equal projections, to the last bit, as the same operations make them.
    projections = (compared.double() * _factors_on(rows.device, compared.shape[1])).sum(1)
    return fetched(projections)


def _projected(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    factors = _factors_on(torch.device("cpu"), rows.shape[1]).numpy()
    return np.asarray((rows * factors).sum(1))


def _digests(projections: NDArray[np.float64] | None) -> str | None:
    return None if projections is None else row_digests(projections)


def _distinct_values(values: NDArray[np.float64] | None) -> int | None:
    """Return how many values are distinct, in a tenth of the time of `numpy.unique` if there are few."""
    if values is None:
        return None
    ordered = np.sort(values)
    is_new = ordered[1:] != ordered[:-1]
    if ordered.size and np.isnan(ordered[-1]):  # they come last, and count as one value
        is_new &= ~np.isnan(ordered[:-1])
    return int(np.count_nonzero(is_new)) + bool(ordered.size)


@lru_cache(maxsize=16)
def _factors_on(device: torch.device, count: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).random(count) + 0.5).to(device)
