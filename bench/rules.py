"""`make rules-report`: every rule on trainings with its illness and on their healthy twins."""

from __future__ import annotations

import argparse
import logging
import sys

from smdebug.logger import get_logger
from smdebug_rules.catalog import CATALOG
from tests.trainings.illnesses import ILLNESSES, Illness, Stall


def report(
    illnesses: tuple[Illness | Stall, ...], seeds: int
) -> tuple[list[tuple[str, ...]], bool]:
    """A row for each rule, and whether all fired where they should and nowhere else."""
    rows, is_right = [], True
    for case in illnesses:
        true, false = (
            sum(case.fires(ill=ill, seed=seed) for seed in range(seeds)) for ill in (True, False)
        )
        is_right = is_right and (true, false) == (seeds, 0)
        rows.append((case.rule, f"{true}/{seeds}", f"{false}/{seeds}", case.what))
        print(".", end="", flush=True)
    return rows, is_right


def main(argv: list[str] | None = None) -> int:
    """Print the table; returns 1 if a rule was silent about its illness, or found one in a healthy run."""
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many trainings of each kind (5)")
    parser.add_argument("--rule", choices=list(CATALOG), help="this rule alone")
    options = parser.parse_args(argv)
    get_logger().setLevel(logging.ERROR)
    chosen = tuple(case for case in ILLNESSES if options.rule in (None, case.rule))
    rows, is_right = report(chosen, options.seeds)
    header = ("rule", "true alarms", "false alarms", "illness")
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(4)]
    print()
    for row in [header, *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
