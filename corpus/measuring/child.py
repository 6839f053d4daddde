"""The child process: trains one program with several seeds, one after another, watched by smdebug.start.

A program of several ranks is trained by as many processes, with the environment that torchrun gives them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import smdebug
from corpus.cases import PLACE
from corpus.measuring.ways import DEFAULT, options
from corpus.measuring.zoo import Trained, find


def main() -> int:
    name, kind, seeds, folder, way = sys.argv[1:]
    trained = find(name, kind)
    place = Path(folder)
    if trained.case.ranks > 1 and "RANK" not in os.environ:
        return start_ranks(trained.case.ranks)
    if trained.case.ranks > 1:
        train_as_rank(trained, int(seeds), place, way)
    else:
        for seed in range(int(seeds)):
            train(trained, seed, place / f"seed-{seed}", way)
    return 0


def train(trained: Trained, seed: int, place: Path, way: str = DEFAULT) -> None:
    """Train in this process, watched from outside, or by the program's own hook if it has one."""
    if trained.case.framework == "jax":  # whose hook is part of the program
        PLACE.set(str(place))
        trained.train(seed)
        return
    with smdebug.start(place, **options(way)):
        trained.train(seed)


def train_as_rank(trained: Trained, seeds: int, place: Path, way: str) -> None:
    """Train as one of several processes, which wait for each other after each training."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    for seed in range(seeds):
        train(trained, seed, place / f"seed-{seed}", way)
        dist.barrier()
    dist.destroy_process_group()


def start_ranks(ranks: int) -> int:
    """Start this command once for each rank; return the first exit code that is not 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    command = [sys.executable, "-m", "corpus.measuring.child", *sys.argv[1:]]
    processes = [
        subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(ranks)
    ]
    codes = [process.wait() for process in processes]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
