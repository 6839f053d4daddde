"""What the default plan adds to a training on the CPU, with its peers in the same table.

    python -m bench.plan_price        prints the table, and exits with 1 if a promise is missed

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
from bench.plan_trainings import (
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
from smdebug.pytorch import observer
from smdebug.pytorch.callbacks import AroundLayer, BeforeForward, BeforeOptimizer
from smdebug.pytorch.measuring import TorchMeasurer
from smdebug.pytorch.observer import TorchObserver
from smdebug.saving import background
from smdebug.saving.default_plan import save_config
from smdebug.saving.system_metrics import resident_bytes

STEPS = 10_000
AFTER = 5
"""Steps that count as those during which a due step is written."""
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
    """Added in the training's thread at a step at which nothing is due."""
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
        return (due * (self.due + self.behind) + (STEPS - due) * self.idle) / (STEPS * self.bare)


class Clocks:
    """Sums of what the hook takes: in what PyTorch calls, and of a processor in the background."""

    def __init__(self) -> None:
        self.inside = self.behind = 0.0

    def take(self) -> tuple[float, float]:
        """Return both sums since the last call."""
        inside, behind, self.inside, self.behind = self.inside, self.behind, 0.0, 0.0
        return inside, behind


@contextmanager
def clocks() -> Iterator[Clocks]:
    """Put a clock around everything that PyTorch, and the thread that writes, call of the library."""
    sums = Clocks()
    depth = 0

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def inside(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            begin, depth = time.perf_counter(), depth + 1
            try:
                return call(*args, **kwargs)
            finally:
                depth -= 1
                if not depth:
                    sums.inside += time.perf_counter() - begin

        return inside

    def behind(attempt: Callable[..., Any]) -> Callable[..., Any]:
        def timed_attempt(act: Callable[[], object]) -> Any:
            begin = time.thread_time()
            try:
                return attempt(act)
            finally:
                sums.behind += time.thread_time() - begin

        return timed_attempt

    places: list[tuple[Any, str, Callable[..., Any]]] = [
        *((kind, "__call__", timed) for kind in (BeforeForward, AroundLayer, BeforeOptimizer)),
        *((kind, "__call__", timed) for kind in (observer._Before, observer._After)),
        *((TorchObserver, name, timed) for name in ("before_backward", "after_criterion")),
        (background, "_attempt", behind),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, around in places:
        setattr(owner, name, around(getattr(owner, name)))
    try:
        yield sums
    finally:
        for owner, name, call in before:
            setattr(owner, name, call)


def price_of_plan(
    make: Callable[[], tuple[nn.Module, torch.Tensor]],
    steps: int,
    rounds: int,
    block: int = 1,
    **options: Any,
) -> Price:
    """Take so many steps of two trainings, one with a hook, a block of one and a block of the other in turn.

    The first eleven steps do not count. In blocks of several steps the usual steps of both are compared. A
    block of one is for trainings whose steps vary by more than an idle hook takes: the clocks measure that.
    """
    idle: list[float] = []
    due: list[float] = []
    behind: list[float] = []
    longer: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        plain, watched = Training(make), Training(make)
        without: list[float] = []
        taken: list[float] = []
        inside: list[float] = []
        with clocks() as sums, the_plan(watched.model, **options), no_collection():
            for _ in range(0, steps, block):
                with no_callbacks():
                    without += [plain.step() for _ in range(block)]
                for _ in range(block):
                    taken.append(watched.step())
                    spent, written = sums.take()
                    inside.append(spent)
                    behind.append(written if len(taken) > 11 else 0.0)
        counted = range(11, steps - AFTER)
        quiet = [step for step in counted if not any(map(is_due, range(step - AFTER, step + 1)))]
        usual = statistics.median(taken[step] for step in quiet)
        bare.append(statistics.median(without[11:]))
        idle.append(
            statistics.median(inside[step] for step in quiet) if block == 1 else usual - bare[-1]
        )
        waiting = statistics.median(inside[step] for step in quiet)
        due += [
            inside[step] if is_due(step + 1) else inside[step] + inside[step + 1] - waiting
            for step in counted
            if is_due(step)
        ]
        longer += [
            sum(taken[step : step + AFTER]) - AFTER * usual for step in counted if is_due(step)
        ]
    saved = rounds * sum(map(is_due, range(11, steps)))
    return Price(
        statistics.median(bare),
        statistics.median(idle),
        statistics.median(due),
        sum(behind) / saved,
        statistics.median(longer),
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
    tensors = [found for found in gc.get_objects() if isinstance(found, torch.Tensor)]
    gradients = {
        tensor.grad.untyped_storage().data_ptr()
        for tensor in tensors
        if tensor.is_leaf and tensor.grad is not None
    }
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {
        storage.data_ptr(): storage.nbytes()
        for storage in storages
        if storage.data_ptr() not in gradients
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
    table.row(
        "MLP, a due step, in the training's thread", small.due * 1e3, "ms", of_step, limit=0.6
    )
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
