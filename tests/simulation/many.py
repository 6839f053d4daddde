"""`make simulate` and `make mutants`: as many schedules as one has time for.

python -m tests.simulation.many 1000000          so many schedules, from seed 0 on, on all cores
python -m tests.simulation.many --seed 4711      one of them, call by call
python -m tests.simulation.many --mutants        each deliberate breakage, until it is caught
                                                 by a schedule, or by its plain test
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from datetime import date
from functools import partial

from tests.simulation.defects.edits import EDITS, is_noticed
from tests.simulation.defects.mutants import MUTANTS
from tests.simulation.invariants import Broken, remember_straight_runs, simulate, story_of

CAUGHT_WITHIN = 1000
_CHUNK = 250


def problems(first: int, count: int = _CHUNK) -> list[tuple[int, str]]:
    """Return the problems with these seeds."""
    tried = ((seed, problem_of(seed)) for seed in range(first, first + count))
    return [(seed, problem) for seed, problem in tried if problem]


def problem_of(seed: int, scenario: str = "") -> str:
    try:
        simulate(seed, scenario)
    except Broken as problem:
        return str(problem)
    return ""


def caught_at(number: int, within: int = CAUGHT_WITHIN) -> int | None:
    """The number of schedules after which a mutant is caught; None if it never is."""
    mutant = MUTANTS[number]
    remember_straight_runs()
    with mutant.at_work():
        found = (seed + 1 for seed in range(within) if problem_of(seed, mutant.scenario))
        return next(found, None)


def simulate_many(count: int, first: int, cores: int) -> int:
    """Run them, print problems as they occur, and return the exit code."""
    begin, done, wrong = time.monotonic(), 0, 0
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        for found in pool.imap_unordered(problems, range(first, first + count, _CHUNK)):
            done += _CHUNK
            wrong += len(found)
            for seed, problem in found:
                print(f"\r{story_of(seed) if wrong == len(found) else ''}\n{problem}\n", flush=True)
            rate = done / (time.monotonic() - begin)
            if sys.stderr.isatty():
                left = max(0, count - done) / rate
                print(
                    f"\r{done:,} of {count:,}, {rate:.0f}/s, {left:.0f} s left ",
                    end="",
                    file=sys.stderr,
                )
    took = time.monotonic() - begin
    print(f"\n{done:,} schedules in {took:.0f} s ({done / took:.0f}/s), {wrong} of them broke a promise.")
    return 1 if wrong else 0


def try_mutants(within: int, cores: int, *, a_third: bool = False) -> int:
    """Try each, or a third of them by the day, print when each was caught, and return the exit code."""
    survived = 0
    chosen = _chosen(len(MUTANTS), a_third=a_third)
    edits = _chosen(len(EDITS), a_third=a_third)
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        results: Iterator[int | None] = pool.imap(partial(caught_at, within=within), chosen)
        for number, seeds in zip(chosen, results, strict=True):
            survived += seeds is None
            words = "SURVIVED" if seeds is None else f"caught after {seeds}"
            print(f"{words:>20}  {MUTANTS[number].name}", flush=True)
        print(f"{len(chosen) - survived} of {len(chosen)} breakages were caught within {within} schedules.")
        unnoticed = 0
        for number, is_seen in zip(edits, pool.imap(is_noticed, edits), strict=True):
            unnoticed += not is_seen
            words = f"a test fails: {EDITS[number].test}" if is_seen else "NO TEST FAILS"
            print(f"{EDITS[number].name}\n{'':8}{words}", flush=True)
    print(f"{len(edits) - unnoticed} of {len(edits)} edits were noticed by their plain test.")
    return 1 if survived or unnoticed else 0


def _chosen(count: int, *, a_third: bool) -> list[int]:
    """Return all numbers, or a third of them by the day."""
    return [n for n in range(count) if not a_third or (n + date.today().toordinal()) % 3 == 0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell the story of one seed")
    parser.add_argument("--scenario", default="", help="of that seed, instead of the seed's own")
    parser.add_argument("--mutants", action="store_true", help="try the deliberate breakages")
    parser.add_argument("--third", action="store_true", help="a third of those, by the day")
    parser.add_argument("--within", type=int, default=CAUGHT_WITHIN, help="schedules for each of them")
    parser.add_argument("--cores", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args()
    if asked.seed is not None:
        print(story_of(asked.seed, asked.scenario))
        problem = problem_of(asked.seed, asked.scenario)
        print(problem or "All promises were kept.")
        return bool(problem)
    if asked.mutants:
        return try_mutants(asked.within, asked.cores, a_third=asked.third)
    return simulate_many(asked.count, asked.first, asked.cores)


if __name__ == "__main__":
    sys.exit(main())
