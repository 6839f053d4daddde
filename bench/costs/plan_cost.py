"""The cost of a training under the default plan: PUTs counted from hooks, dollars from the handlers."""

from __future__ import annotations

import contextlib
import io
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import smdebug
from smdebug import modes
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.index import IndexMeta, TensorEntry, encode_index
from smdebug.files.names import event_key, index_key
from smdebug.mode_keys import ModeKeys
from smdebug.service.costs import PRICES
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.live.run_index import RunIndex
from smdebug.trials.observations.replicas import Digests, differences
from smdebug.trials.stored.worker_steps import ArrivedIndex

STEPS = 10_000
RANKS = (1, 8, 1024)
Measure = Callable[..., tuple[Any, int]]


class CountedStorage(MemoryStorage):
    """A bucket that counts the objects written to it, by worker."""

    def __init__(self) -> None:
        super().__init__("counted")
        self.puts: Counter[str] = Counter()

    def write(self, key: str, data: Any) -> None:
        super().write(key, data)
        self.puts["worker_1" if "worker_1" in key else "worker_0"] += 1


def puts(include_workers: str | None = None) -> tuple[int, int, int]:
    """Return the PUTs of the first rank and of another one in `STEPS` steps, and the steps that both save."""
    storage = CountedStorage()
    options: dict[str, Any] = {"num_workers": 2, "run_id": "bench"}
    if include_workers is not None:
        options["include_workers"] = include_workers
    hooks = [smdebug.Hook(storage, worker=rank, **options) for rank in range(2)]
    weight = np.ones((8, 8), np.float32)
    for hook in hooks:
        hook.observes = True
        for step in range(STEPS):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1.0 / (step + 1))
                hook.record("dense/weight", weight)
                hook.record("gradient/dense/weight", weight)
    for hook in reversed(hooks):
        hook.close()
    both = sum("worker_1" in key for key in storage.list("index/"))
    return storage.puts["worker_0"], storage.puts["worker_1"], both


def report(rules: int, measure: Measure) -> None:
    """Print PUTs and dollars of a training of `STEPS` steps, for each number of ranks."""
    with contextlib.redirect_stdout(io.StringIO()):
        first, other, compared = puts()
        _, other_of_all, saved = puts("all")
        bills = {ranks: _dollars_per_step(measure, ranks, 20 if ranks < 100 else 4, rules) for ranks in RANKS}
    print(
        f"\nThe first {STEPS:,} steps under the default plan: {saved} are saved, and {compared} of them by "
        f"every rank.\nThe hook's PUTs are those of all ranks; the application evaluates {rules} rules.\n"
    )
    columns = ("ranks", "PUTs", "PUTs $", "application $", "all $", 'PUTs of "all"', '"all" $')
    print("".join(column.rjust(15) for column in columns))
    for ranks in RANKS:
        own = first + (ranks - 1) * other
        of_all = first + (ranks - 1) * other_of_all
        application = (saved - compared) * bills[1] + compared * bills[ranks]
        put = PRICES["S3 PUT"]
        whole = of_all * put + saved * bills[ranks]
        cells = (
            f"{ranks:,}",
            f"{own:,}",
            f"{own * put:.4f}",
            f"{application:.4f}",
            f"{own * put + application:.4f}",
            f"{of_all:,}",
            f"{whole:.4f}",
        )
        print("".join(cell.rjust(15) for cell in cells))
    parsed, comparing = seconds_to_compare(RANKS[-1])
    print(
        f"\nComparing the {RANKS[-1]:,} ranks of a step, of which one differs in one of 500 tensors: "
        f"{parsed * 1000:.0f} ms for their index files, {comparing * 1000:.0f} ms for the rest (<= 50 ms)."
    )
    print('\n"all" is include_workers="all", where every rank saves every step of the plan.')


def seconds_to_compare(ranks: int) -> tuple[float, float]:
    """Return the seconds for parsing the index files of one step, and for finding what differs."""
    names = ("smdebug/facts", "smdebug/digests/parameters", "smdebug/digests/inputs")
    files = []
    for rank in range(ranks):
        roots = {"parameters": f"{rank == ranks - 1:032x}", "inputs": f"{rank:032x}"}
        event_file = event_key(10, f"worker_{rank}")
        meta = IndexMeta(ModeKeys.TRAIN, 10, event_file, {"previous_step": 0, "root_digests": roots})
        entries = [TensorEntry(name, 0, 100, rank, "int64", (2, 2)) for name in names]
        files.append((index_key(10, f"worker_{rank}"), encode_index(meta, entries)))
    index, alike = RunIndex(), AlikeIndexFiles()
    begin = time.perf_counter()
    index.add(
        ArrivedIndex(key, 10, f"worker_{rank}", alike.parse(data, file=key))
        for rank, (key, data) in enumerate(files)
    )
    parsed = time.perf_counter()
    written = index.workers_at(10, ModeKeys.TRAIN) or {}
    tensors = [f"t{n}" for n in range(500)]
    usual = np.ones((len(tensors), 2), np.int64)
    different = usual.copy()
    different[7] = 2
    found = differences(
        {worker: each.root_digests["parameters"] for worker, each in written.items()},
        lambda worker: Digests(tensors, different if worker == f"worker_{ranks - 1}" else usual),
    )
    assert [(each.name, each.workers) for each in found] == [("t7", (f"worker_{ranks - 1}",))]
    return parsed - begin, time.perf_counter() - parsed


def _dollars_per_step(measure: Measure, ranks: int, steps: int, rules: int) -> float:
    """The application's dollars for a step that all ranks save, the first one in full."""
    bill, _ = measure(ranks, steps, rules, replicas=True)
    return float(bill.dollars) / steps
