"""What the default plan adds to a training on the CPU, with its peers in the same table.

    python -m bench.plan.plan_price        prints the table, and exits with 1 if a promise is missed

`make bench-hooks` does the same after its own table.

Steps with and without a hook alternate in one process, and medians are compared. Those without one
call nothing of the library, neither callbacks of every optimizer nor those of every backward pass.

The steps of a large training vary by more than the hook takes, so that is measured by clocks around what
PyTorch, and the thread that writes, call of the library. The share of the first 10,000 steps counts both,
as if no other core were free for what runs in the background.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any, NamedTuple

import torch
from torch import nn

import smdebug.pytorch as smd
from bench.measure import Table
from bench.plan.plan_clocks import Clocks, clocks
from bench.plan.plan_trainings import (
    Training,
    histograms,
    items,
    mlp,
    no_callbacks,
    no_collection,
    resnet,
    the_plan,
    transformer,
)
from smdebug.pytorch.tensors.measurer import TorchMeasurer
from smdebug.saving.planning.default_plan import save_config
from smdebug.saving.process.system_metrics import resident_bytes

STEPS = 10_000
AFTER = 5
"""Steps that count as those during which a due step is written."""
NEAR = 20
"""Steps after a due one that take longer: first it is written, and then the caches are filled again."""
LATE = range(1000, 2000)
"""Steps of which every 100th is due, as in nine tenths of the first 10,000."""
_PLAN = save_config()


def is_due(step: int) -> bool:
    """Whether the default plan saves this step."""
    return _PLAN.should_save_step(smd.modes.GLOBAL, step)


PEERS = (("outputs' .item()", items), ("gradients' histograms", histograms))


class Price(NamedTuple):
    """What a step costs, in seconds."""

    bare: float
    """A step without a hook, by the clock."""
    idle: float
    """Added in the training's thread at a step at which nothing is due, at least 20 steps after a due one."""
    soon: float
    """The same, six to nine steps after a due one: it has used the caches, and is still being written."""
    due: float
    """Added in the training's thread by a step that is due, until the next one has handed it over."""
    behind: float
    """What a due step takes of a processor in the background."""
    by_clock: float
    """What a due step and those after it take longer by the clock, whatever the reason."""

    @property
    def amortised(self) -> float:
        """The share that is added to the first 10,000 steps, if nothing runs beside the training for free."""
        due = sum(map(is_due, range(STEPS)))
        soon = sum(any(map(is_due, range(step - NEAR, step))) for step in range(STEPS)) - due
        idle = soon * self.soon + (STEPS - due - soon) * self.idle
        return (due * (self.due + self.behind) + idle) / (STEPS * self.bare)


class Taken(NamedTuple):
    """The seconds of each step of two trainings, of which one has a hook."""

    without: list[float]
    watched: list[float]
    inside: list[float]
    """By the clocks, of the one with a hook, as is `behind`."""
    behind: list[float]


def trained(
    make: Callable[[], tuple[nn.Module, torch.Tensor]],
    steps: int,
    block: int,
    sums: Clocks,
    **options: Any,
) -> Taken:
    """Take so many steps of both trainings, a block of one and a block of the other in turn."""
    plain, watched = Training(make), Training(make)
    taken = Taken([], [], [], [])
    with the_plan(watched.model, **options), no_collection():
        for _ in range(0, steps, block):
            with no_callbacks():
                taken.without.extend(plain.step() for _ in range(block))
            for _ in range(block):
                taken.watched.append(watched.step())
                spent, written = sums.take()
                taken.inside.append(spent)
                taken.behind.append(written)
    return taken


def price_of_plan(
    make: Callable[[], tuple[nn.Module, torch.Tensor]],
    steps: int,
    rounds: int,
    block: int = 1,
    **options: Any,
) -> Price:
    """Return the price of the plan in a training of so many steps, of which the first eleven do not count.

    In blocks of several steps the usual steps of both trainings are compared, in rounds without the clocks:
    they take as long as what they are around. Those rounds go on to the steps of which most trainings are
    made. A block of one is for trainings whose steps vary by more than an idle hook takes: the clocks
    measure that.
    """
    idle: list[float] = []
    soon: list[float] = []
    due: list[float] = []
    behind: list[float] = []
    longer: list[float] = []
    bare: list[float] = []
    counted = range(11, steps - AFTER)
    saved = list(filter(is_due, counted))
    quiet = [step for step in counted if not any(map(is_due, range(step - AFTER, step + 1)))]
    for _ in range(rounds):
        with clocks() as sums:
            clocked = trained(make, steps, block, sums, **options)
        inside = clocked.inside
        waiting = statistics.median(inside[step] for step in quiet)
        due += [
            inside[step] if is_due(step + 1) else inside[step] + inside[step + 1] - waiting for step in saved
        ]
        behind.append(sum(clocked.behind[11:]) / sum(map(is_due, range(11, steps))))
        alone = clocked if block == 1 else trained(make, LATE.stop, block, Clocks(), **options)
        usual = statistics.median(alone.watched[step] for step in quiet)
        bare.append(statistics.median(alone.without[11:]))
        soon.append(waiting if block == 1 else usual - bare[-1])
        idle.append(waiting if block == 1 else usual_late(alone.watched) - usual_late(alone.without))
        longer += [sum(alone.watched[step : step + AFTER]) - AFTER * usual for step in saved]
    return Price(*map(statistics.median, (bare, idle, soon, due, behind, longer)))


def usual_late(taken: list[float]) -> float:
    """The usual seconds of a late step at which nothing is due, nor was shortly before."""
    return statistics.median(
        taken[step] for step in LATE if not any(map(is_due, range(step - NEAR, step + 1)))
    )


def price_of_peer(
    make: Callable[[], tuple[nn.Module, torch.Tensor]],
    around: Callable[[nn.Module], AbstractContextManager[None]],
    steps: int,
    rounds: int,
) -> float:
    """Train with and without, in turn; return the seconds added to a step."""
    added = []
    for _ in range(rounds):
        bare = statistics.median(Training(make).steps(0, steps))
        training = Training(make)
        with around(training.model):
            added.append(statistics.median(training.steps(0, steps)) - bare)
    return statistics.median(added)


def measuring_against_norm() -> float:
    """How many times as long it takes to measure 500 tensors of 64 Ki values as to compute their norms."""
    tensors = [torch.randn(1 << 16) for _ in range(500)]

    def measure() -> None:
        measurer = TorchMeasurer()
        for tensor in tensors:
            measurer.measure_tensor(tensor, digest=False)
        measurer.end_step()

    def seconds(call: Callable[[], object]) -> float:
        call()
        found = []
        for _ in range(9):
            begin = time.perf_counter()
            call()
            found.append(time.perf_counter() - begin)
        return statistics.median(found)

    return seconds(measure) / seconds(lambda: torch._foreach_norm(tensors))


def growth() -> float:
    """MB by which the process grows from step 2,000 to step 10,000 of the small training."""
    training = Training(mlp)
    with the_plan(training.model):
        training.steps(0, 2000)
        before = resident_bytes() or 0
        training.steps(2000, STEPS)
        return ((resident_bytes() or 0) - before) / (1 << 20)


def kept_tensors(make: Callable[[], tuple[nn.Module, torch.Tensor]]) -> tuple[float, float]:
    """MB of the tensors that exist only because of the hook, between two saved steps; and the limit."""
    training = Training(make)
    training.steps(0, 1)
    known = _storages()
    with the_plan(training.model):
        training.steps(0, 2)
        found = _storages()
    parameters = sum(each.numel() * each.element_size() for each in training.model.parameters())
    extra = sum(size for place, size in found.items() if place not in known)
    return extra / (1 << 20), max(64.0, 0.05 * parameters / (1 << 20))


def _storages() -> dict[int, int]:
    """The sizes of the memory of all tensors, except for gradients, by where it is."""
    gc.collect()
    # isinstance would ask objects for their class, of which some warn that they are deprecated.
    tensors = [found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)]
    gradients = {
        tensor.grad.untyped_storage().data_ptr()
        for tensor in tensors
        if tensor.is_leaf and tensor.grad is not None
    }
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {
        storage.data_ptr(): storage.nbytes() for storage in storages if storage.data_ptr() not in gradients
    }


class Promises:
    """Rows of a table with what was promised of each, and what was missed."""

    def __init__(self, title: str):
        self.table = Table(title)
        self.missed: list[str] = []

    def row(
        self, what: str, found: float, unit: str, beside: str = "", *, limit: float | None = None
    ) -> None:
        """Add a number. It is missed if it is above the limit."""
        promised = ""
        if limit is not None:
            promised = f"<= {limit:g} {unit}"
            if not found <= limit:
                promised += ", MISSED"
                self.missed.append(f"{what}: {found:.3g} {unit}, promised <= {limit:g} {unit}")
        self.table.row(what, f"{found:.3g} {unit}", beside, promised)


def price_table(rounds: int = 5) -> Promises:
    """Return the table of the default plan's price."""
    table = Promises("What the default plan adds to a training on the CPU")
    small = price_of_plan(mlp, 400, rounds, 50)
    of_step = f"of {small.bare * 1e3:.2f} ms"
    table.row("MLP, a step with nothing due", small.idle * 1e3, "ms", of_step, limit=0.02)
    table.row("  six to nine steps after a due one", small.soon * 1e3, "ms", of_step)
    table.row("MLP, a due step, in the training's thread", small.due * 1e3, "ms", of_step, limit=0.6)
    table.row("  behind it, of a processor", small.behind * 1e3, "ms")
    table.row("  both, by the clock", small.by_clock * 1e3, "ms", of_step)
    for name, options in (
        ("without system metrics", {"system_metrics": False}),
        ('evaluated beside it (evaluate="here")', {"evaluate": "here"}),
    ):
        with stderr_kept() as stderr:
            other = price_of_plan(mlp, 400, 2, 50, **options)
            if "evaluate" in options and not was_evaluated(stderr):
                sys.exit("The training was not evaluated, so there is no price of it.")
        table.row(f"  {name}, nothing due", other.idle * 1e3, "ms", of_step)
        table.row(f"  {name}, a due step", other.due * 1e3, "ms", of_step)
        table.row(f"  {name}, behind it", other.behind * 1e3, "ms", of_step)
        table.row(f"  {name}, by the clock", other.by_clock * 1e3, "ms", of_step)
    for name, peer in PEERS:
        added = price_of_peer(mlp, peer, 300, rounds)
        table.row(f"  peer: {name}, each step", added * 1e3, "ms")
    for name, make in (("ResNet-18", resnet), ("Transformer", transformer)):
        found = price_of_plan(make, 52, 1)
        of_step = f"of {found.bare * 1e3:.0f} ms"
        table.row(f"{name}, a due step, in the training's thread", found.due * 1e3, "ms", of_step)
        table.row("  behind it, of a processor", found.behind * 1e3, "ms")
        table.row("  both, by the clock", found.by_clock * 1e3, "ms")
        table.row("  a step with nothing due", found.idle * 1e3, "ms")
        table.row(f"{name}, the first 10,000 steps", 100 * found.amortised, "%", limit=1)
        for label, peer in PEERS:
            added = price_of_peer(make, peer, 6, 1)
            table.row(f"  peer: {label}, each step", added * 1e3, "ms")
    table.row("500 tensors of 64 Ki", measuring_against_norm(), "norms", limit=12)
    kept, limit = kept_tensors(resnet)
    table.row("ResNet-18, tensors kept from step to step", kept, "MB", limit=limit)
    table.row("MLP, growth from step 2,000 to 10,000", max(growth(), 0.0), "MB", limit=2)
    return table


@contextmanager
def stderr_kept() -> Iterator[IO[bytes]]:
    """Keep what this process and its children print on stderr, instead of printing it into the table."""
    with tempfile.TemporaryFile() as file:
        printed_to = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            os.dup2(printed_to, 2)
            os.close(printed_to)


def was_evaluated(stderr: IO[bytes]) -> bool:
    """Whether the process beside the training has printed its last line, which it may do a little later."""
    for _ in range(300):
        stderr.seek(0)
        if b"Again: smdebug evaluate" in stderr.read():
            return True
        time.sleep(0.1)
    return False


def main() -> None:
    torch.set_num_threads(2)
    promises = price_table()
    print(promises.table)
    if promises.missed:
        sys.exit("Missed:\n  " + "\n  ".join(promises.missed))


if __name__ == "__main__":
    main()
