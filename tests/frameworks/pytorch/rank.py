"""Trainings by several processes: `python -m tests.frameworks.pytorch.rank` reads which, line by line.

PyTorch takes seconds to import. It is imported once, and each rank of each story is a fork of its own. A
story prints what the tests want to know, as one line of JSON.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

import smdebug
import smdebug.pytorch as smd
from smdebug.exceptions import TrainingStopped
from smdebug.runs.requests.zooming import request_zoom
from tests.frameworks.pytorch.training import EVERY_STEP, Net

RANKS = 2


def batch_of(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(5, 8, generator=made), torch.randint(0, 3, (5,), generator=made)


def train(
    run: str, wrap: Any, *, steps: int = 3, hook: bool = True, evaluate_every: int = 0, **settings: Any
) -> Any:
    """Train on this rank's batches; gives the model, and the gradients as they were used."""
    rank = distributed.get_rank()
    torch.manual_seed(0)
    model = Net()
    model.dropout.p = 0
    called, criterion = wrap(model), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(called.parameters(), lr=0.1)
    watch = None
    if hook:
        watch = smd.Hook(run, **{"save_config": EVERY_STEP, "save_all": True, **settings})
        watch.register_module(called)
        watch.register_loss(criterion)
    used: list[Any] = []
    try:
        for step in range(steps):
            inputs, labels = batch_of(rank, step)
            optimizer.zero_grad()
            criterion(called(inputs), labels).backward()
            weight = next(called.parameters()).grad
            used.append(weight.to_local().tolist() if hasattr(weight, "to_local") else weight.tolist())
            optimizer.step()
            if evaluate_every and step % evaluate_every == evaluate_every - 1:
                called.eval()
                with torch.no_grad():
                    for batch in range(3):
                        criterion(called(batch_of(9, batch)[0]), batch_of(9, batch)[1])
                called.train()
            if watch is not None and step == 2 and rank == 0 and settings.get("look_for_stop") == 0:
                stop = Path(run) / "control"
                stop.mkdir()
                (stop / "stop").write_text('{"reason": "enough"}')
    except TrainingStopped as stopped:
        print(json.dumps({"stopped": stopped.step}))
    if watch is not None:
        watch.close()
    return called, used


def ddp(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def in_step_only(model: nn.Module) -> nn.Module:
    """The ranks wait for each other at every step, and exchange nothing."""
    model.register_forward_pre_hook(lambda *_: distributed.barrier())
    return model


def sharded(model: nn.Module) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    fully_shard(model.fc1, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def flattened(model: nn.Module) -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))


def all_workers(run: str) -> None:
    print(json.dumps({"used": train(run, ddp, include_workers="all")[1]}))


def one_worker(run: str) -> None:
    train(run, ddp)


def same_results(run: str) -> None:
    watched, _ = train(run, ddp, include_workers="all")
    alone, _ = train(run, ddp, hook=False)
    same = all(
        torch.equal(here, there) for here, there in zip(watched.parameters(), alone.parameters(), strict=True)
    )
    print(json.dumps({"same": same}))


def stop(run: str) -> None:
    interval = smd.SaveConfig(save_interval=2)
    train(run, ddp, steps=200, look_for_stop=0, save_config=interval)


def stop_without_others(run: str) -> None:
    settings: dict[str, Any] = {"look_for_stop": 0} if distributed.get_rank() == 0 else {}
    _, used = train(run, ddp, steps=8, hook=distributed.get_rank() == 0, **settings)
    print(json.dumps({"steps": len(used)}))


def shards(run: str) -> None:
    print(json.dumps({"used": train(run, sharded, include_workers="all")[1]}))


def flat_shards(run: str) -> None:
    train(run, flattened, include_workers="all")


def compared(run: str) -> None:
    """Watched from outside: gradients are averaged over ranks."""
    with smdebug.start(run):
        train(run, ddp, steps=12, hook=False)


def timed(run: str) -> None:
    """Ranks that train for so many steps that all write the times of some of them."""
    with smdebug.start(run):
        train(run, ddp, steps=62, hook=False)


def computed_twice(run: str) -> None:
    """One bit of what the second rank computes is wrong at step 210, when steps 10 and 110 were repeated."""
    calls = itertools.count()

    def flip(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor | None:
        return output * (1 + 2**-22) if next(calls) == 212 and distributed.get_rank() else None

    def defective(model: nn.Module) -> nn.Module:
        model.fc1.register_forward_hook(flip)  # type: ignore[union-attr]
        return ddp(model)

    alone, _ = train(run, ddp, steps=12, hook=False)
    with smdebug.start(run + "-sound", compute_twice=1):
        sound, _ = train(run, ddp, steps=12, hook=False)
    pairs = zip(alone.parameters(), sound.parameters(), strict=True)
    print(json.dumps({"same": all(torch.equal(*pair) for pair in pairs)}))
    with smdebug.start(run, compute_twice=100):
        train(run, defective, steps=212, hook=False)


def compared_while_one_evaluates(run: str) -> None:
    """The first rank alone evaluates the model, after every fifth step."""
    with smdebug.start(run):
        train(run, ddp, steps=12, hook=False, evaluate_every=0 if distributed.get_rank() else 5)


def not_synchronised(run: str) -> None:
    """The same without averaging, so that each rank trains a model of its own."""
    with smdebug.start(run):
        train(run, in_step_only, steps=12, hook=False)


def compared_shards(run: str) -> None:
    with smdebug.start(run):
        train(run, sharded, steps=2, hook=False)


class OfParts(nn.Module):
    """A layer whose weight is a tensor of a mesh: `draw` makes what each rank holds of it."""

    def __init__(self, mesh: Any, placements: Any, draw: Any):
        from torch.distributed.tensor import DTensor

        super().__init__()
        self.mesh = mesh
        self.is_split = placements[0].is_shard()
        self.weight = nn.Parameter(DTensor.from_local(draw(), mesh, placements, run_check=False))
        self.head = nn.Linear(8 if self.is_split else 4, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        from torch.distributed.tensor import DTensor, Shard

        hidden = nn.functional.linear(inputs, self.weight.to_local())
        if self.is_split:
            hidden = DTensor.from_local(hidden, self.mesh, [Shard(1)]).full_tensor()
        found: torch.Tensor = self.head(hidden)
        return found


def train_parts(run: str, model: nn.Module, of_rank: Any = int) -> None:
    """Train on batches of this rank, or of the rank that `of_rank` returns for it."""
    with smdebug.start(run):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(12):
            inputs, labels = batch_of(of_rank(distributed.get_rank()), step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        distributed.barrier()  # one that began after the other's end would find a finished run


def of_one_mesh(name: str, placement: Any, draw: Any) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=(name,))
    return OfParts(mesh, [placement], draw)


def shards_drawn_alike(run: str) -> None:
    from torch.distributed.tensor import Shard

    torch.manual_seed(0)
    train_parts(run, of_one_mesh("tp", Shard(0), lambda: torch.randn(4, 8)), lambda rank: 0)


def shards_drawn_apart(run: str) -> None:
    """The healthy twin: ranks of tensor parallelism get the same rows, and hold different parts."""
    from torch.distributed.tensor import Shard

    torch.manual_seed(distributed.get_rank())
    model = of_one_mesh("tp", Shard(0), lambda: torch.randn(4, 8))
    torch.manual_seed(0)
    model.head.reset_parameters()  # type: ignore[operator, union-attr]
    train_parts(run, model, lambda rank: 0)


def copies_drawn_apart(run: str) -> None:
    from torch.distributed.tensor import Replicate

    torch.manual_seed(distributed.get_rank())
    train_parts(run, of_one_mesh("replicate", Replicate(), lambda: torch.randn(4, 8)))


def shards_of_the_same_rows(run: str) -> None:
    torch.manual_seed(0)
    train_parts(run, sharded(Net()), lambda rank: 0)


def watched_shards(run: str) -> None:
    """FSDP 2 and 1 under the default plan, and each without: the same bits."""
    same = {}
    for kind, wrap in {"shards": sharded, "flat": flattened}.items():
        alone, used_alone = train(run, wrap, steps=12, hook=False)
        drawn = torch.rand(4)
        with smdebug.start(f"{run}/{kind}"):
            watched, used = train(run, wrap, steps=12, hook=False)
        same[kind] = used == used_alone and torch.equal(drawn, torch.rand(4))
        for here, there in zip(watched.parameters(), alone.parameters(), strict=True):
            pair = [each.to_local() if kind == "shards" else each for each in (here, there)]
            same[kind] = same[kind] and torch.equal(*pair)
    print(json.dumps(same))


def sharded_numbers(run: str) -> None:
    """A bias of one number, of which the second rank holds nothing."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,), mesh_dim_names=("dp",)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with smd.Hook(run, include_workers="all") as watch:
        watch.register_module(model)
        for step in range(12):
            optimizer.zero_grad()
            model(batch_of(distributed.get_rank(), step)[0]).square().mean().backward()
            optimizer.step()


def zoomed_shards(run: str) -> None:
    """A request that is written between two steps, while the ranks wait."""
    torch.manual_seed(0)
    model = sharded(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with smd.Hook(run, look_for_stop=0) as watch:
        watch.register_module(model)
        for step in range(8):
            if step == 5 and distributed.get_rank() == 0:
                watch.flush()
                request_zoom(run, ["^Net_fc1.weight$"], steps=2)
            distributed.barrier()
            inputs, labels = batch_of(distributed.get_rank(), step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        distributed.barrier()


def train_as_rank(rank: int, ranks: int, module: str, story: str, run: str) -> None:
    # They meet in a file: a port that is free now may be taken before the first rank listens.
    place = f"file://{run}.ranks"
    distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    getattr(importlib.import_module(module), story)(run)
    distributed.barrier()
    distributed.destroy_process_group()


def forked(rank: int, ranks: int, output: str, story: str, run: str, module: str = __name__) -> int:
    """Start the rank in a process of its own, which writes its output to that file; return its number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(file, stream)
        signal.alarm(300)
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
        train_as_rank(rank, ranks, module, story, run)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for module in ("torch._dynamo", "torch.distributed.device_mesh", "torch.distributed.fsdp"):
        with suppress(ImportError):
            importlib.import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        outputs = asked.pop("outputs")
        ranks = [forked(rank, len(outputs), output, **asked) for rank, output in enumerate(outputs)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
