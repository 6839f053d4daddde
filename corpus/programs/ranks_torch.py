"""Trainings of two processes that PyTorch connects by gloo: healthy, and with faults between the ranks.

The process group exists when a program begins, as in scripts for torchrun after their first line. Ranks other
than the first save digests at every tenth saved step: 0, 10, 110. So that is where a fault can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel

from corpus.cases import fault, healthy, layer, tensor
from corpus.programs.data import batches, digit_images, digits
from corpus.programs.faults_torch import ONSET
from corpus.programs.healthy_torch import Convolutional, classifier, validate

RANKS = 2


def sharded(
    *tensors: Tensor, seed: int, epochs: int, size: int = 32, of_rank: int | None = None
) -> Iterator[tuple[Tensor, ...]]:
    """Batches of this rank's share of the data, or of another rank's."""
    rank = dist.get_rank() if of_rank is None else of_rank
    count = len(tensors[0]) // RANKS
    shard = [tensor[rank : count * RANKS : RANKS] for tensor in tensors]
    yield from batches(*shard, size=size, seed=seed + 1000 * rank, epochs=epochs)


def average(parameters: Iterator[nn.Parameter] | list[nn.Parameter]) -> None:
    """Average the gradients over the ranks, as DistributedDataParallel does."""
    for parameter in parameters:
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= RANKS


def logged(loss: Tensor) -> float:
    """The loss averaged over the ranks, for the log: it keeps the ranks in step."""
    whole = loss.detach().clone()
    dist.all_reduce(whole)
    return float(whole) / RANKS


# Healthy


@healthy(held_out=False, ranks=RANKS)
def distributed_data_parallel(seed: int) -> float:
    torch.manual_seed(seed)
    model = DistributedDataParallel(classifier())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(5):
        for some, expected in sharded(*digits(), seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digits(validation=True))
    return accuracy


@healthy(held_out=False, ranks=RANKS)
def distributed_batch_normalisation(seed: int) -> float:
    """Each rank has running statistics of its own between two broadcasts, as is usual."""
    torch.manual_seed(seed)
    model = DistributedDataParallel(Convolutional(bias=False))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in sharded(*digit_images(), seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
    return validate(model, *digit_images(validation=True))


@healthy(held_out=True, ranks=RANKS)
def gradients_averaged_by_hand(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for some, expected in sharded(*digits(), seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        average(model.parameters())
        optimizer.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=False, ranks=RANKS)
def experts_of_each_rank(seed: int) -> float:
    """The body is shared, and each rank trains a head of its own for its own digits."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    torch.manual_seed(seed + 1 + dist.get_rank())
    model = nn.Sequential(body, nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in sharded(*digits(), seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        average(body.parameters())
        optimizer.step()
    return validate(model, *digits(validation=True))


# Faults


@fault(
    "replicas differ",
    r"weight|bias|worker|rank",
    visible_from=10,
    onset=1,
    source="pytorch #104336",
    held_out=False,
    ranks=RANKS,
)
def gradients_never_reduced(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for some, expected in sharded(*digits(), seed=seed, epochs=6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(some), expected)
        loss.backward()
        if not faulty:
            average(model.parameters())
        logged(loss)
        optimizer.step()


@fault(
    "replicas differ",
    layer("1"),
    visible_from=10,
    onset=1,
    source="DeepSpeed #1801",
    held_out=True,
    ranks=RANKS,
)
def normalisation_clipped_on_some_ranks_only(seed: int, faulty: bool) -> None:
    """The layer normalisation of rank 1 takes its gradients as they were before clipping."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 10))
    norm = list(model[1].parameters())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for some, expected in sharded(*digits(), seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        average(model.parameters())
        whole = [parameter.grad.clone() for parameter in norm if parameter.grad is not None]
        nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        if faulty and dist.get_rank() == 1:
            for parameter, gradient in zip(norm, whole, strict=True):
                parameter.grad = gradient
        optimizer.step()


@fault(
    "replicas differ",
    tensor("3.weight"),
    visible_from=10,
    onset=1,
    source="DeepSpeed #4321",
    held_out=False,
    ranks=RANKS,
)
def parameter_left_out_of_the_reduction(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    reduced = [parameter for name, parameter in model.named_parameters() if not faulty or name != "3.weight"]
    for some, expected in sharded(*digits(), seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        average(reduced)
        optimizer.step()


@fault(
    "replicas differ",
    tensor("0.weight"),
    visible_from=ONSET + 50,
    onset=ONSET,
    source="pytorch #84803",
    held_out=True,
    ranks=RANKS,
)
def reduced_gradient_that_arrives_as_zeros(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(sharded(*digits(), seed=seed, epochs=6)):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        average(model.parameters())
        gradient = model[0].weight.grad
        if faulty and step == ONSET and dist.get_rank() == 1 and gradient is not None:
            gradient.zero_()
        optimizer.step()


@fault(
    "ranks alike",
    r"input|batch|worker|rank",
    visible_from=10,
    onset=0,
    source="no DistributedSampler",
    held_out=False,
    ranks=RANKS,
)
def same_data_on_all_ranks(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = DistributedDataParallel(classifier())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    rank = 0 if faulty else dist.get_rank()
    for some, expected in sharded(*digits(), seed=seed, epochs=6, of_rank=rank):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault(
    "ranks alike",
    tensor("0.weight", "worker", "rank"),
    visible_from=10,
    onset=0,
    source="ms-swift #7944",
    held_out=False,
    ranks=RANKS,
)
def shards_initialised_from_one_seed(seed: int, faulty: bool) -> None:
    """Each rank holds half of the hidden units; from one seed the halves begin alike."""
    torch.manual_seed(seed + (0 if faulty else 1 + dist.get_rank()))
    shard = nn.Linear(64, 32)
    torch.manual_seed(seed)
    head = nn.Linear(32, 10, bias=False)
    with torch.no_grad():
        if not faulty and dist.get_rank() == 1:
            nn.init.normal_(head.weight, std=0.1)
    model = nn.Sequential(shard, nn.ReLU(), head)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for some, expected in batches(*digits(), size=32, seed=seed, epochs=3):
        part = model(some)
        others = part.detach().clone()
        dist.all_reduce(others)
        optimizer.zero_grad()
        F.cross_entropy(part + (others - part.detach()), expected).backward()
        optimizer.step()


@fault(
    "missing rank",
    r"worker_1|rank 1",
    visible_from=110,
    onset=31,
    source="DeepSpeed #5794",
    held_out=False,
    ranks=RANKS,
)
def rank_that_runs_out_of_data(seed: int, faulty: bool) -> None:
    """From step 31 on rank 1 has no batches, and only takes part in the averaging."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(sharded(*digits(), seed=seed, epochs=6)):
        optimizer.zero_grad()
        if faulty and step > 30 and dist.get_rank() == 1:
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
        else:
            F.cross_entropy(model(some), expected).backward()
        average(model.parameters())
        optimizer.step()


@fault(
    "missing rank",
    r"worker_1|rank 1",
    visible_from=110,
    onset=31,
    source="a process that ended",
    held_out=False,
    ranks=RANKS,
)
def rank_that_ends_early(seed: int, faulty: bool) -> None:
    """Rank 1 ends after step 30, and the other one goes on alone, as elastic training does."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(sharded(*digits(), seed=seed, epochs=6)):
        if faulty and step > 30 and dist.get_rank() == 1:
            return
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        if not faulty or step <= 30:
            average(model.parameters())
        optimizer.step()
