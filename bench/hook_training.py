"""What a hook adds to a small and to a medium training: run with this library, and with the old one.

    python -m bench.hook_training ROUNDS      prints seconds per iteration, as JSON

It uses only what both libraries have.
"""

import gc
import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
from itertools import pairwise

os.environ["SMDEBUG_LOG_LEVEL"] = "error"
logging.disable(logging.WARNING)

import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

import smdebug.pytorch as smd

# The training's own thread, on a machine where others work, too: HOOK_CLOCK=thread
CLOCK = time.thread_time if os.environ.get("HOOK_CLOCK") == "thread" else time.perf_counter
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SMALL, MEDIUM = (32, 64, 64, 10), (256, 1024, 1024, 1024, 10)
NEVER = 10**9


class Training:
    """An MLP, its data, and an optimizer."""

    def __init__(self, sizes, batch):
        torch.manual_seed(0)
        layers = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.model = nn.Sequential(*layers[:-1])
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.inputs = torch.randn(batch, sizes[0])
        self.labels = torch.randint(0, sizes[-1], (batch,))
        self.size = sum(p.numel() * 4 for p in self.model.parameters())

    def step(self):
        self.optimizer.zero_grad()
        self.loss(self.model(self.inputs), self.labels).backward()
        self.optimizer.step()

    def run(self, iterations):
        begin = CLOCK()
        for _ in range(iterations):
            self.step()
        return CLOCK() - begin


def hooked(training, **settings):
    folder = tempfile.mkdtemp(dir=FOLDER)
    hook = smd.Hook(folder + "/run", **settings)
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    return hook, folder


def where_nothing_is_due(sizes, batch, iterations, rounds):
    """Medians of seconds per iteration of two trainings, of which one has a hook: each iteration in turn."""
    bare, added = [], []
    for _ in range(rounds):
        pair = [Training(sizes, batch) for _ in range(2)]
        hook, folder = hooked(pair[1], save_config=smd.SaveConfig(save_interval=NEVER))
        seconds: list[list[float]] = [[], []]
        for training in pair:
            training.run(3)  # of which the first is saved
        gc.collect()
        gc.disable()
        for number in range(iterations):
            for which in (0, 1) if number % 2 else (1, 0):
                seconds[which].append(pair[which].run(1))
        gc.enable()
        hook.close()
        shutil.rmtree(folder, ignore_errors=True)
        bare.append(statistics.median(seconds[0]))
        added.append(statistics.median(seconds[1]) - bare[-1])
    return medians(bare, added, sizes, batch, iterations)


def inside_where_nothing_is_due(sizes, batch, iterations, rounds):
    """Seconds per iteration that are spent in what the hook has PyTorch call, by a clock around each.

    An iteration of the medium training takes a thousand times that, and varies by more. It leaves the
    processor's caches cold, so the hook takes longer than in the small one.
    """
    whole, inside = [], []
    for _ in range(rounds):
        training = Training(sizes, batch)
        hook, folder = hooked(training, save_config=smd.SaveConfig(save_interval=NEVER))
        training.run(3)
        spent = put_clocks_around(training)
        for _ in range(iterations):
            whole.append(training.run(1))
            inside.append(sum(spent))
            spent.clear()
        hook.close()
        shutil.rmtree(folder, ignore_errors=True)
    return medians(whole, inside, sizes, batch, iterations)


def put_clocks_around(training):
    """Return the list to which each callback of a module, and of optimizers, adds its seconds."""
    spent = []

    def timed(callback):
        def call(*args, **kwargs):
            begin = CLOCK()
            try:
                return callback(*args, **kwargs)
            finally:
                spent.append(CLOCK() - begin)

        return call

    modules = [*training.model.modules(), training.loss]
    callbacks = [_global_optimizer_pre_hooks]
    callbacks += [each for m in modules for each in (m._forward_pre_hooks, m._forward_hooks)]
    for registered in callbacks:
        for key, callback in list(registered.items()):
            registered[key] = timed(callback)
    return spent


def measure(sizes, batch, iterations, turns, rounds, **settings):
    """Seconds per iteration of two trainings, of which one has a hook: so many iterations each, in turn.

    Closing it counts. Of several turns the first does not: its memory is fresh, which takes a system a few
    milliseconds or a hundred, so the first step is measured separately. The median of all rounds is taken.
    """
    bare, added, first = [], [], []
    for number in range(rounds + 1):
        bare_training, another = (Training(sizes, batch) for _ in range(2))
        for training in (bare_training, another):
            training.run(3)
        hook, folder = hooked(another, **settings)
        without = watched = 0.0
        gc.collect()
        gc.disable()
        if turns > 1:
            first.append(another.run(1) - bare_training.run(1))
            bare_training.run(iterations - 1)
            another.run(iterations - 1)
        for _ in range(turns):
            without += bare_training.run(iterations)
            watched += another.run(iterations)
        begin = CLOCK()
        hook.close()
        watched += CLOCK() - begin
        gc.enable()
        shutil.rmtree(folder, ignore_errors=True)
        if number:
            bare.append(without / iterations / turns)
            added.append((watched - without) / iterations / turns)
    return {
        **medians(bare, added, sizes, batch, iterations),
        "first": statistics.median(first) if first else 0.0,
    }


def medians(bare, added, sizes, batch, iterations):
    return {
        "bare": statistics.median(bare),
        "added": statistics.median(added),
        "bytes": Training(sizes, batch).size,
        "iterations": iterations,
    }


def every(steps):
    return {"save_config": smd.SaveConfig(save_interval=steps), "save_all": True}


def main(rounds):
    torch.set_num_threads(1)
    found = {
        "nothing due, small": where_nothing_is_due(SMALL, 32, 200, rounds),
        "nothing due, medium": inside_where_nothing_is_due(MEDIUM, 64, 30, rounds),
        "default, small": measure(SMALL, 32, 500, 1, rounds),
        "save_all every 10, small": measure(SMALL, 32, 10, 20, rounds, **every(10)),
        "save_all every 10, medium": measure(MEDIUM, 64, 10, 10, rounds, **every(10)),
        "save_all every step, small": measure(SMALL, 32, 10, 5, rounds, **every(1)),
        "TensorBoard, small": measure(
            SMALL, 32, 30, 1, max(rounds // 3, 1), export_tensorboard=True, **every(1)
        ),
        "TensorBoard, medium": measure(
            MEDIUM, 64, 4, 1, max(rounds // 3, 1), export_tensorboard=True, **every(1)
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
