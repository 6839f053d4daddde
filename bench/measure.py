"""Honest timings: everything that is compared runs in turn in one process, and medians are compared."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

Setup = Callable[[], object]


def in_turn(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 7,
    before: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """The median seconds of each contestant: A B C, A B C, … after one round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for counted in [False, *[True] * rounds]:
        for name, run in contestants.items():
            before()
            gc.collect()
            gc.disable()
            begin = time.perf_counter()
            run()
            seconds = time.perf_counter() - begin
            gc.enable()
            if counted:
                taken[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


class Table:
    """Rows of a measurement: its name, the result, what it is compared with, and the promise."""

    def __init__(self, title: str):
        self.title = title
        self.rows: list[tuple[str, str, str, str]] = []

    def row(self, what: str, ours: str, peer: str = "", ratio: str = "") -> None:
        self.rows.append((what, ours, peer, ratio))
        print(".", end="", flush=True)

    def __str__(self) -> str:
        header = ("", "smdebug-serverless", "peer, same run", "ratio (promised)")
        rows = [header, *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        rule = "-" * max(map(len, lines))
        return "\n".join(["", self.title, rule, lines[0], rule, *lines[1:], rule])


def rate(count: float, seconds: float) -> str:
    per_second = count / seconds
    return f"{per_second / 1000:,.0f}k/s" if per_second >= 10_000 else f"{per_second:,.0f}/s"


def throughput(size: float, seconds: float) -> str:
    return f"{size / seconds / 1e9:.2f} GB/s"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.2f} ms"
