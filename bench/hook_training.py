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


def measure(sizes, batch, iterations, rounds, *, first=0, **settings):
    """Medians of seconds per iteration, without the hook and with it, in turn; closing it counts."""
    bare, watched = [], []
    for number in range(rounds + 1):
        for with_hook in (False, True):
            training = Training(sizes, batch)
            training.run(3)
            hook, folder = hooked(training, **settings) if with_hook else (None, None)
            training.run(first)
            gc.collect()
            gc.disable()
            seconds = training.run(iterations)
            if hook is not None:
                begin = CLOCK()
                if not first:  # else it is the steps alone that are asked about
                    hook.close()
                    seconds += CLOCK() - begin
                else:
                    hook.close()
                shutil.rmtree(folder, ignore_errors=True)
            gc.enable()
            if number:
                (watched if with_hook else bare).append(seconds / iterations)
    return {
        "bare": statistics.median(bare),
        "added": statistics.median(w - b for w, b in zip(watched, bare)),  # noqa: B905
        "bytes": Training(sizes, batch).size,
        "iterations": iterations,
    }


def every(steps):
    return {"save_config": smd.SaveConfig(save_interval=steps), "save_all": True}


def main(rounds):
    torch.set_num_threads(1)
    found = {
        "nothing due, small": measure(
            *(SMALL, 32, 300, rounds), first=2, save_config=smd.SaveConfig(save_interval=NEVER)
        ),
        "nothing due, medium": measure(
            *(MEDIUM, 64, 30, rounds), first=2, save_config=smd.SaveConfig(save_interval=NEVER)
        ),
        "default, small": measure(SMALL, 32, 500, rounds),
        "save_all every 10, small": measure(SMALL, 32, 200, rounds, **every(10)),
        "save_all every 10, medium": measure(MEDIUM, 64, 100, rounds, **every(10)),
        "save_all every step, small": measure(SMALL, 32, 50, rounds, **every(1)),
        "TensorBoard, small": measure(
            *(SMALL, 32, 30, max(rounds // 3, 1)), export_tensorboard=True, **every(1)
        ),
        "TensorBoard, medium": measure(
            *(MEDIUM, 64, 4, max(rounds // 3, 1)), export_tensorboard=True, **every(1)
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
