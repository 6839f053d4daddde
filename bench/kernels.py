"""`make bench-kernels`: what rules compute from a 64 MB tensor, against straightforward numpy.

Everything that is compared runs in turn in one process. For 16-bit types numpy's results are wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from bench.measure import Table, in_turn, milliseconds
from smdebug.numbers.conditions import all_close, count_non_finite
from smdebug.numbers.statistics import abs_mean, statistics

MEGABYTES = 64


class Contest(NamedTuple):
    """One question, numpy's answer and ours, and how many times as fast ours was promised to be."""

    what: str
    numpy: Callable[[], Any]
    ours: Callable[[], Any]
    promised: float


def naive_statistics(x: Any) -> tuple[Any, ...]:
    """Seven statistics, each computed in a pass of its own."""
    return (
        np.isnan(x).sum() + np.isinf(x).sum(),
        (x == 0).sum(),
        x.min(),
        x.max(),
        x.mean(),
        np.abs(x).mean(),
        x.var(),
    )


def contests(megabytes: int) -> list[Contest]:
    """What is measured, over weights as a network has them."""
    random = np.random.default_rng(0)
    x = random.normal(0.01, 0.1, megabytes << 18).astype(np.float32)
    moved = x * np.float32(1 + 1e-6)
    half = np.concatenate([x, x]).astype(ml_dtypes.bfloat16)
    return [
        Contest(
            "how many are not finite",
            lambda: np.isnan(x).sum() + np.isinf(x).sum(),
            lambda: count_non_finite(x),
            3.5,
        ),
        Contest("mean |x|", lambda: np.mean(np.abs(x)), lambda: abs_mean(x), 2.3),
        Contest("allclose", lambda: np.allclose(x, moved), lambda: all_close(x, moved), 5.0),
        Contest("seven statistics", lambda: naive_statistics(x), lambda: statistics(x), 4.0),
        Contest("mean |x| of bfloat16", lambda: np.mean(np.abs(half)), lambda: abs_mean(half), 8.0),
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the table; with --json, the ratios alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="how large the tensor is (64)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (7)")
    parser.add_argument("--json", action="store_true", help="print the ratios as JSON")
    options = parser.parse_args(argv)
    table = Table(f"kernels, {options.megabytes} MB, milliseconds")
    ratios = {}
    for contest in contests(options.megabytes):
        seconds = in_turn({"numpy": contest.numpy, "ours": contest.ours}, rounds=options.rounds)
        ratio = seconds["numpy"] / seconds["ours"]
        ratios[contest.what] = round(ratio, 2)
        table.row(
            contest.what,
            milliseconds(seconds["ours"]),
            milliseconds(seconds["numpy"]),
            f"{ratio:.1f} x ({contest.promised:g} x)",
        )
    print(json.dumps(ratios) if options.json else table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
