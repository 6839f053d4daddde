"""`make rules-report`: every rule on failing trainings and on their healthy twins."""

from __future__ import annotations

import argparse
import logging
import sys

from smdebug.logger import get_logger
from smdebug_rules.catalog import CATALOG
from tests.trainings.failures import FAILURES, Failure, Stall


def report(failures: tuple[Failure | Stall, ...], seeds: int) -> tuple[list[tuple[str, ...]], bool]:
    """Return a row for each rule, and whether every rule fired on failing trainings and only there."""
    rows: list[tuple[str, ...]] = []
    is_right = True
    for case in failures:
        true, false = (
            sum(case.fires(failing=failing, seed=seed) for seed in range(seeds)) for failing in (True, False)
        )
        is_right = is_right and (true, false) == (seeds, 0)
        rows.append((case.rule, f"{true}/{seeds}", f"{false}/{seeds}", case.what))
        print(".", end="", flush=True)
    return rows, is_right


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a rule missed a failure or raised a false alarm."""
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="number of trainings of each kind (5)")
    parser.add_argument("--rule", choices=list(CATALOG), help="only this rule")
    options = parser.parse_args(argv)
    chosen = tuple(case for case in FAILURES if options.rule in (None, case.rule))
    rows, is_right = report(chosen, options.seeds)
    header = ("rule", "true alarms", "false alarms", "failure")
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(4)]
    print()
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0 if is_right else 1


if __name__ == "__main__":
    get_logger().setLevel(logging.ERROR)
    sys.exit(main())
