"""Trainings by several processes whose parameters are sharded, each with the numbers of the whole tensors."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import distributed, nn

import smdebug

ROWS, UNITS = 9, 6
"""Of four ranks, one has none of the first layer's six rows, and one none of the head's three."""


class Model(nn.Module):
    """Two layers, whose weights are small whole numbers and a zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(ROWS, UNITS)
        self.head = nn.Linear(UNITS, 3)
        with torch.no_grad():
            for parameter in self.parameters():
                count = parameter.numel()
                parameter.copy_((torch.arange(count) % 8 - 3).reshape(parameter.shape))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.first(rows))
        return found


def train(run: str, model: nn.Module, of_rank: int, **options: Any) -> None:
    """Train; print the whole weights before each update, and the whole gradients, as float64."""
    seen: dict[str, dict[str, list[float]]] = {}
    with smdebug.start(run, **options):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(2):
            made = torch.Generator().manual_seed(10 * step + of_rank)
            optimizer.zero_grad()
            weights = {name: whole(parameter) for name, parameter in model.named_parameters()}
            model(torch.randint(-2, 3, (4, ROWS), generator=made).float()).square().mean().backward()
            for name, parameter in model.named_parameters():
                gradient = None if parameter.grad is None else whole(parameter.grad)
                seen[f"{step} Model_{name}"] = numbers_of(weights[name])
                if gradient is not None:
                    seen[f"{step} gradient/Model_{name}"] = numbers_of(gradient)
            optimizer.step()
            for name, parameter in model.named_parameters():
                seen[f"{step} update/Model_{name}"] = numbers_of(whole(parameter) - weights[name])
        distributed.barrier()
    if distributed.get_rank() == 0:
        print(json.dumps(seen))


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All values of a tensor, gathered from the ranks that hold its parts."""
    gathered: torch.Tensor = tensor.detach().full_tensor()  # type: ignore[operator]
    return gathered.clone()


def numbers_of(tensor: torch.Tensor) -> Any:
    """Count, zeros, least, largest, mean, mean magnitude, root mean square and deviation."""
    wide = tensor.double()
    counts = [wide.numel(), int((wide == 0).sum()), float(wide.min()), float(wide.max())]
    means = [wide.mean(), wide.abs().mean(), wide.square().mean().sqrt(), wide.std(correction=0)]
    return [*counts, *map(float, means)]


def mesh_of(*sizes: int, names: tuple[str, ...]) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", sizes, mesh_dim_names=names)


def fully_sharded(model: nn.Module, mesh: Any) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    fully_shard(model.first, mesh=mesh)  # type: ignore[arg-type]
    fully_shard(model, mesh=mesh)
    return model


def over_all(run: str) -> None:
    """FSDP 2 over all ranks, each of which saves its part at every step."""
    mesh = mesh_of(distributed.get_world_size(), names=("dp",))
    train(run, fully_sharded(Model(), mesh), distributed.get_rank(), include_workers="all")


def by_default(run: str) -> None:
    """The same as the default plan saves it."""
    mesh = mesh_of(distributed.get_world_size(), names=("dp",))
    train(run, fully_sharded(Model(), mesh), distributed.get_rank())


def hybrid(run: str) -> None:
    """Sharded over two ranks, and copied over two such groups."""
    mesh = mesh_of(2, 2, names=("copies", "shards"))
    train(run, fully_sharded(Model(), mesh), distributed.get_rank(), include_workers="all")


def two_dimensions(run: str) -> None:
    """Tensor parallelism over two ranks, and FSDP over two such groups."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = mesh_of(2, 2, names=("dp", "tp"))
    model = Model()
    parallelize_module(model, mesh["tp"], {"first": ColwiseParallel(), "head": RowwiseParallel()})
    train(run, fully_sharded(model, mesh["dp"]), distributed.get_rank() // 2, include_workers="all")


def tensor_parallel(run: str) -> None:
    """Tensor parallelism alone: the bias of the head is copied to all ranks."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = mesh_of(distributed.get_world_size(), names=("tp",))
    model = Model()
    parallelize_module(model, mesh, {"first": ColwiseParallel(), "head": RowwiseParallel()})
    train(run, model, 0, include_workers="all")
