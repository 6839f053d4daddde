"""A watched training is the same to the last bit, in each way of training that docs/frameworks.md names.

Compared are parameters and buffers, the state of optimizers, and the next numbers of each random generator.
"""

import contextlib
import random

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

import smdebug
import smdebug.pytorch as smd
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import EVERY_STEP, since

STEPS = 13


class Model(nn.Module):
    """A layer with randomness, one with buffers, and one that depends on the mode."""

    def __init__(self, checkpointed=False):
        super().__init__()
        self.first, self.norm = nn.Linear(8, 6), nn.BatchNorm1d(6)
        self.dropout, self.last = nn.Dropout(0.3), nn.Linear(6, 3)
        self.checkpointed = checkpointed

    def forward(self, x):
        return self.last(
            checkpoint(self.inner, x, use_reentrant=False) if self.checkpointed else self.inner(x)
        )

    def inner(self, x):
        return self.dropout(torch.relu(self.norm(self.first(x))))


def batch():
    return torch.randn(10, 8), torch.randint(0, 3, (10,))


def loss_of(model):
    inputs, labels = batch()
    return F.cross_entropy(model(inputs), labels)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def plain(watch):
    model = watch(Model())
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return [model, optimizer]


def validated(watch):
    model = watch(Model())
    optimizer = adam(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(3):
        model.train()
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss_of(model)
        schedule.step()
    return [model, optimizer]


def accumulated(watch):
    model = watch(Model())
    optimizer = adam(model)
    for step in range(24):
        (loss_of(model) / 3).backward()
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return [model, optimizer]


def autocast(watch):
    model = watch(Model())
    optimizer = adam(model)
    for _ in range(STEPS):
        inputs, labels = batch()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [model, optimizer]


def scaled(watch):
    model = watch(Model())
    optimizer = adam(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        scaler.step(optimizer)
        scaler.update()
    return [model, optimizer]


def closures(watch):
    model = watch(Model())
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for _ in range(4):
        inputs, labels = batch()

        def closure(inputs=inputs, labels=labels):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            return loss

        optimizer.step(closure)
    return [model]


def adversaries(watch):
    generator, critic = watch(nn.Sequential(nn.Linear(4, 8), nn.Tanh())), watch(nn.Linear(8, 1))
    optimizers = [adam(generator), adam(critic)]
    for _ in range(STEPS):
        optimizers[1].zero_grad()
        (critic(generator(torch.randn(5, 4)).detach()) - critic(torch.randn(5, 8))).mean().backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        (-critic(generator(torch.randn(5, 4)))).mean().backward()
        optimizers[0].step()
    return [generator, critic, *optimizers]


def checkpointed(watch):
    model = watch(Model(checkpointed=True))
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    return [model, optimizer]


def masters(watch):
    model = watch(nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3)).bfloat16())
    copies = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(copies, 0.1)
    for _ in range(STEPS):
        inputs, labels = batch()
        model.zero_grad()
        F.cross_entropy(model(inputs.bfloat16()).float(), labels).backward()
        for copy, parameter in zip(copies, model.parameters(), strict=True):
            copy.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for copy, parameter in zip(copies, model.parameters(), strict=True):
                parameter.copy_(copy)
    return [model, optimizer]


def by_hand(watch):
    model = watch(Model())
    for _ in range(STEPS):
        loss_of(model).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.05 * parameter.grad
                parameter.grad = None
    return [model]


def data_parallel(watch):
    model = watch(nn.DataParallel(Model()))
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    return [model, optimizer]


# Its end waits for gloo's threads, which may wait for the GIL that it holds (PyTorch 2.13).
LEFT_ALIVE = []


def distributed_data_parallel(watch):
    with one_rank():
        model = watch(nn.parallel.DistributedDataParallel(Model()))
        LEFT_ALIVE.append(model)
        optimizer = adam(model)
        for step in range(STEPS):
            optimizer.zero_grad()
            with model.no_sync() if step % 2 else contextlib.nullcontext():
                loss_of(model).backward()
            optimizer.step()
    return [model.module, optimizer]


def compiled(watch):
    torch._dynamo.reset()
    model = Model()
    called = watch(torch.compile(model, backend="eager"))
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(called).backward()
        optimizer.step()
    return [model, optimizer]


def compiled_with_its_loss(watch):
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(8, 6), nn.Dropout(0.2), nn.Linear(6, 3))
    optimizer = adam(model)
    called = torch.compile(lambda inputs, labels: F.cross_entropy(model(inputs), labels), backend="eager")
    for _ in range(STEPS):
        optimizer.zero_grad()
        called(*batch()).backward()
        optimizer.step()
    return [model, optimizer]


@contextlib.contextmanager
def one_rank():
    """A group of one process."""
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


WAYS = {
    way.__name__: way
    for way in (
        plain,
        validated,
        accumulated,
        autocast,
        closures,
        adversaries,
        checkpointed,
        masters,
        by_hand,
        data_parallel,
        distributed_data_parallel,
    )
}
WAYS_SINCE = [
    pytest.param(scaled, marks=since("2.3", "a GradScaler for the CPU")),
    pytest.param(compiled, marks=since("2.6", "graphs that contain what watches modules")),
    pytest.param(compiled_with_its_loss, marks=since("2.6", "graphs that contain what watches modules")),
]


@contextlib.contextmanager
def started(place, **options):
    """Watched from outside, by the default plan."""
    with smdebug.start(place, **options):
        yield lambda model: model


def computed_twice(place):
    return started(place, compute_twice=1)


@contextlib.contextmanager
def hooked(place, **options):
    """Watched by a hook, which is all that differs between its two ways of saving."""
    hook = smd.Hook(place, **options)

    def watch(model):
        hook.register_module(model)
        return model

    try:
        yield watch
    finally:
        hook.close()


def everything(place):
    return hooked(place, save_all=True, save_config=EVERY_STEP)


def state_after(way, watch):
    """Return the final state of a training: all of its tensors, and the next numbers of its generators."""
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(7)
    found = [torch.randn(3)]
    tensors = []
    for part in way(watch):
        tensors += tensors_in(part.state_dict())
    found += tensors
    return [*found, torch.randn(3), torch.tensor([np.random.random(), random.random()])]


def tensors_in(state):
    if isinstance(state, torch.Tensor):
        return [state.detach().clone()]
    if isinstance(state, dict):
        return [tensor for value in state.values() for tensor in tensors_in(value)]
    return [tensor for value in state for tensor in tensors_in(value)] if isinstance(state, list) else []


@pytest.mark.parametrize("watching", [started, computed_twice, hooked, everything])
@pytest.mark.parametrize("way", [*WAYS.values(), *WAYS_SINCE])
def test_a_watched_training_is_the_same_to_the_last_bit(way, watching, tmp_path):
    alone = state_after(way, lambda model: model)
    place = str(tmp_path / "run")
    with watching(place) as watch:
        watched = state_after(way, watch)
    assert len(alone) == len(watched) > 4
    assert all(torch.equal(*pair) for pair in zip(alone, watched, strict=True))
    unseen = {
        (compiled_with_its_loss, hooked),
        (compiled_with_its_loss, everything),
        (by_hand, started),
        (by_hand, computed_twice),
    }
    if (way, watching) not in unseen:  # no forward begins steps there, or there is no optimizer
        assert create_trial(place).steps()
