"""Trainings of several ranks that may hang; the argument is a folder.

All run side by side, and each has a run in the folder. Those that hang are killed once the ranks have written
what there is to say, however long this machine takes for that. Prints the exit code of each rank.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, nn

import smdebug
from local_aws.running.bootstrap import die_with
from smdebug.files.notes.stalls import STANDS, Stall, stall_key
from smdebug_default_rules.ranks.standing import CONFIRMED

STEPS = 200
HANGS_AT = 120
AT_MOST = 200.0
"""After how many seconds a story is over, whatever happened."""


def have_waited(run: Path, workers: Iterable[str]) -> bool:
    """Whether each of these ranks has written that it stands, and for long enough to be believed."""
    for worker in workers:
        file = run / stall_key(worker)
        if not file.exists():
            return False
        stall = Stall.parse(file.read_bytes(), str(file))
        if stall.state != STANDS or stall.seconds < CONFIRMED * stall.limit:
            return False
    return True


def sleeping_in_data(seconds: float) -> None:
    time.sleep(seconds)


def sleeps(rank: int, step: int, model: nn.Module, run: Path) -> None:
    if rank == 1 and step == HANGS_AT:
        sleeping_in_data(AT_MOST)


def is_killed(rank: int, step: int, model: nn.Module, run: Path) -> None:
    if rank == 1 and step == HANGS_AT:
        os.kill(os.getpid(), signal.SIGKILL)


def raises(rank: int, step: int, model: nn.Module, run: Path) -> None:
    if step == HANGS_AT:
        raise ValueError("every rank has this mistake")


def is_stopped(rank: int, step: int, model: nn.Module, run: Path) -> None:
    """It runs no more Python, and its connections stay open."""
    if rank == 1 and step == HANGS_AT:
        os.kill(os.getpid(), signal.SIGSTOP)


def skips_a_collective(rank: int, step: int, model: nn.Module, run: Path) -> None:
    if step == HANGS_AT:
        if rank == 0:
            distributed.broadcast(torch.zeros(4), 0)
            distributed.all_reduce(torch.zeros(4))
        else:
            distributed.barrier()


def evaluates(rank: int, step: int, model: nn.Module, run: Path) -> None:
    """The first rank evaluates for several times the limit, while the others wait for it."""
    if step == HANGS_AT:
        if rank == 0:
            model.eval()
            until = time.monotonic() + AT_MOST
            while time.monotonic() < until and not have_waited(run, ["worker_1"]):
                with torch.no_grad():
                    model(torch.zeros(4, 8))
                time.sleep(0.05)
            model.train()
        distributed.barrier()


def saves(rank: int, step: int, model: nn.Module, run: Path) -> None:
    """The first rank writes a checkpoint to a slow disk."""
    if step == HANGS_AT:
        if rank == 0:
            save_checkpoint(model, run)
        distributed.barrier()


class SlowFile:
    def write(self, data: bytes) -> int:
        time.sleep(0.5)
        return len(data)

    def flush(self) -> None:
        pass


def save_checkpoint(model: nn.Module, run: Path) -> None:
    file = SlowFile()
    until = time.monotonic() + AT_MOST
    while time.monotonic() < until and not have_waited(run, ["worker_1"]):
        file.write(b"")
    torch.save(model.state_dict(), os.devnull)


def begins_slowly(rank: int, step: int, model: nn.Module, run: Path) -> None:
    if rank == 0 and step == 0:
        time.sleep(4)


def ends(rank: int, step: int, model: nn.Module, run: Path) -> None:
    pass


def train(story: str, run: str, rank: int, patience: float) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{run}.ranks",  # a port might be taken before the first rank listens
        rank=rank,
        world_size=STORIES[story],
        timeout=timedelta(seconds=patience),
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 1))
    trained = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
    torch.manual_seed(1 + rank)
    with smdebug.start(run):
        for step in range(STEPS):
            globals()[story](rank, step, trained, Path(run))
            time.sleep(0.01)
            optimizer.zero_grad()
            trained(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
        if story == "ends" and rank == 0:
            time.sleep(3)  # what follows a training takes its time
    distributed.destroy_process_group()


STORIES = {
    "sleeps": 3,
    "is_killed": 2,
    "raises": 2,
    "is_stopped": 3,
    "skips_a_collective": 2,
    "evaluates": 2,
    "saves": 2,
    "begins_slowly": 2,
    "ends": 2,
}
"""How many ranks each has."""
HANGS = {
    "sleeps": ["worker_0", "worker_1", "worker_2"],
    "is_stopped": ["worker_0", "worker_2"],
    "skips_a_collective": ["worker_0", "worker_1"],
}
"""The stories that do not end, and which ranks of each write where they stand."""


def forked(story: str, run: str, rank: int) -> int:
    """Start a rank in a process of its own; return its number."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with(parent)
        file = os.open(f"{run}-{rank}.txt", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(STORIES[story]))
        train(story, run, rank, 2 * AT_MOST)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            atexit._run_exitfuncs()  # a fork that ends by `_exit` runs none, and an interpreter would
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def is_over(stories: set[str], folder: Path) -> bool:
    """Whether all that is left are trainings that hang, of which the ranks have said so."""
    return all(story in HANGS and have_waited(folder / story, HANGS[story]) for story in stories)


def kill(processes: Collection[int]) -> None:
    """Stop all before the first is killed: a rank whose connection closes would write that it has ended."""
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
    for pid in processes:
        with suppress(ProcessLookupError, ChildProcessError):  # it had ended by itself
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(folder: str) -> None:
    for module in (
        "torch._dynamo",
        "torch.distributed.fsdp",
        "smdebug.pytorch.hook",
        "smdebug.pytorch.unchanged",
    ):
        with suppress(ImportError):
            importlib.import_module(module)
    started = {
        (story, rank): forked(story, f"{folder}/{story}", rank)
        for story, size in STORIES.items()
        for rank in range(size)
    }
    codes: dict[str, dict[int, int | None]] = {
        story: dict.fromkeys(range(size)) for story, size in STORIES.items()
    }
    until = time.monotonic() + AT_MOST
    left = dict(started)
    while time.monotonic() < until and not is_over({story for story, _ in left}, Path(folder)):
        for key, pid in [*left.items()]:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[key[0]][key[1]] = os.waitstatus_to_exitcode(status)
                del left[key]
        time.sleep(0.1)
    kill(left.values())
    print(json.dumps(codes))


if __name__ == "__main__":
    main(sys.argv[1])
