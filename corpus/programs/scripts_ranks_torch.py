"""Trainings of two or three processes as longer scripts write them: samplers, sharded optimizers, pipelines.

None of them was shown to the rules.
"""

from __future__ import annotations

import contextlib
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler

from corpus.cases import fault, healthy
from corpus.programs.scripts_faults_torch import Net
from corpus.programs.scripts_healthy_torch import Digits


def own_share(seed: int, size: int = 32, *, shared: bool = True) -> DataLoader[object]:
    """Batches of this rank's share of the digits, or of all of them in the same order on all ranks."""
    data = Digits("train")
    sampler: Sampler[int] = (
        DistributedSampler(data, seed=seed)
        if shared
        else RandomSampler(data, generator=torch.Generator().manual_seed(seed))
    )
    return DataLoader(data, size, sampler=sampler, drop_last=True)


@healthy(held_out=True, ranks=2)
def optimizer_in_shards(seed: int) -> float:
    """Each rank's optimizer owns half of the parameters, and the others' come by broadcast."""
    torch.manual_seed(seed)
    model = DistributedDataParallel(Net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    loss = torch.zeros(())
    for _ in range(5):
        for images, labels in own_share(seed):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    return float(loss.detach())


@healthy(held_out=True, ranks=2)
def parameters_in_shards(seed: int) -> float:
    """Fully sharded: each rank holds half of every tensor."""
    torch.manual_seed(seed)
    model = Net()
    fully_shard(model.hidden, mesh=dist.init_device_mesh("cpu", (2,)))
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    loss = torch.zeros(())
    for _ in range(3):
        for images, labels in own_share(seed):
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return float(loss.detach())


@healthy(held_out=True, ranks=2)
def micro_batches_without_synchronisation(seed: int) -> float:
    """Gradients are reduced with every fourth pass alone, so that they differ in between."""
    torch.manual_seed(seed)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loss = torch.zeros(())
    number = 0
    for _ in range(10):
        for images, labels in own_share(seed, size=16):
            last = number % 4 == 3
            with contextlib.nullcontext() if last else model.no_sync():
                loss = F.cross_entropy(model(images), labels) / 4
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
            number += 1
    return float(loss.detach())


@healthy(held_out=True, ranks=2)
def pipeline_of_two_processes(seed: int) -> float:
    """Rank 0 has the first layers and rank 1 the last; activations and gradients are sent."""
    torch.manual_seed(seed)
    whole = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    first = dist.get_rank() == 0
    model = copy.deepcopy(whole[:3] if first else whole[3:])
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    loss = torch.zeros(())
    for _ in range(5):
        for images, labels in own_share(seed, shared=False):
            optimizer.zero_grad()
            if first:
                hidden = model(images)
                dist.send(hidden.detach().contiguous(), 1)
                slope = torch.empty_like(hidden)
                dist.recv(slope, 1)
                hidden.backward(slope)
            else:
                hidden = torch.empty(32, 48)
                dist.recv(hidden, 0)
                loss = F.cross_entropy(model(hidden.requires_grad_()), labels)
                loss.backward()
                assert hidden.grad is not None
                dist.send(hidden.grad, 0)
            optimizer.step()
    return float(loss.detach())


@fault(
    "replicas differ",
    r"weight|bias|worker|rank",
    visible_from=10,
    onset=1,
    source="the model inside of the wrapper is called",
    held_out=True,
    ranks=2,
)
def wrapper_that_is_bypassed(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(5):
        for images, labels in own_share(seed):
            optimizer.zero_grad()
            output = model.module(images) if faulty else model(images)
            F.cross_entropy(output, labels).backward()
            optimizer.step()


@fault(
    "ranks alike",
    r"input|batch|worker|rank",
    visible_from=10,
    onset=0,
    source="no DistributedSampler",
    held_out=True,
    ranks=2,
)
def sampler_that_knows_no_ranks(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(4):
        for images, labels in own_share(seed, shared=not faulty):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


@fault(
    "replicas differ",
    r"weight|bias|worker|rank",
    visible_from=0,
    source="another seed on each rank, and no broadcast",
    held_out=True,
    ranks=2,
    also=("bad initialisation",),
)
def weights_of_another_seed_on_each_rank(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed + (dist.get_rank() if faulty else 0))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        for images, labels in own_share(seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
                assert parameter.grad is not None
                parameter.grad /= dist.get_world_size()
            optimizer.step()


@fault(
    "missing rank",
    r"worker_1|rank 1",
    visible_from=110,
    onset=41,
    source="a process that ended",
    held_out=True,
    ranks=3,
)
def one_of_three_ranks_ends(seed: int, faulty: bool) -> None:
    """Every rank trains a model of its own, as a sweep of seeds under one launcher does."""
    torch.manual_seed(seed + dist.get_rank())
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = 0
    for _ in range(12):
        for images, labels in own_share(seed):
            if faulty and step > 40 and dist.get_rank() == 1:
                return
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step += 1
