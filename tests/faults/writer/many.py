"""`make writer-faults`: as many schedules of faults under real hooks as one has time for.

python -m tests.faults.writer.many 5000          so many schedules, from seed 0 on, on all cores
python -m tests.faults.writer.many --seed 4711   one of them, call by call
python -m tests.faults.writer.many --defects     each deliberate defect, until a schedule finds it
python -m tests.faults.writer.many --kills 40    real processes, killed at their calls of the system
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from functools import partial

from tests.faults.writer.defects import DEFECTS, FOUND_WITHIN, found_at
from tests.faults.writer.judging import judge
from tests.faults.writer.kills import killed_runs

_CHUNK = 50


def problems(first: int, stop: int) -> tuple[list[tuple[int, list[str]]], Counter[str]]:
    """Return the problems of up to 50 seeds, and what befell the others."""
    found: list[tuple[int, list[str]]] = []
    befell: Counter[str] = Counter()
    for seed in range(first, min(first + _CHUNK, stop)):
        verdict = judge(seed)
        befell += verdict.befell
        if verdict.problems:
            found.append((seed, verdict.problems))
    return found, befell


def try_many(count: int, first: int, cores: int) -> int:
    """Run them, print problems as they occur, and return the exit code."""
    begin, wrong = time.monotonic(), 0
    befell: Counter[str] = Counter()
    stop = first + count
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        for found, more in pool.imap_unordered(partial(problems, stop=stop), range(first, stop, _CHUNK)):
            befell += more
            wrong += len(found)
            for seed, sentences in found:
                print("\n".join([f"seed {seed}:", *sentences, ""]), flush=True)
    took = time.monotonic() - begin
    print(", ".join(f"{number:,} {what}" for what, number in befell.most_common()))
    print(f"{count:,} schedules in {took:.0f} s ({count / took:.0f}/s), {wrong} of them broke a promise.")
    return 1 if wrong else 0


def try_defects(within: int, cores: int) -> int:
    """Try each, print when each was found, and return the exit code."""
    survived = 0
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        found = pool.imap(partial(found_at, within=within), range(len(DEFECTS)))
        for defect, seeds in zip(DEFECTS, found, strict=True):
            survived += seeds is None
            words = "SURVIVED" if seeds is None else f"found after {seeds}"
            print(f"{words:>20}  {defect.name}", flush=True)
    print(f"{len(DEFECTS) - survived} of {len(DEFECTS)} defects were found within {within} schedules.")
    return 1 if survived else 0


def try_kills(count: int) -> int:
    """Kill so many processes, print what does not hold, and return the exit code."""
    begin = time.monotonic()
    runs = killed_runs(count)
    wrong = [run for run in runs if run.problems]
    for run in wrong:
        print("\n".join([f"killed at call {run.call}:", *run.problems]))
    steps = Counter(run.steps for run in runs)
    seen = ", ".join(f"{number} with {step} steps" for step, number in sorted(steps.items()))
    took = time.monotonic() - begin
    print(f"{len(runs)} processes were killed in {took:.0f} s ({seen}), {len(wrong)} broke a promise.")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("count", nargs="?", type=int, default=5000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell the story of one seed")
    parser.add_argument("--defects", action="store_true", help="try the deliberate defects")
    parser.add_argument("--within", type=int, default=FOUND_WITHIN, help="schedules for each of them")
    parser.add_argument("--kills", type=int, help="kill so many real processes")
    parser.add_argument("--cores", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args()
    if asked.seed is not None:
        verdict = judge(asked.seed, keeps_history=True)
        print(verdict.story)
        print("\n".join(verdict.problems) or "All promises were kept.")
        return bool(verdict.problems)
    if asked.defects:
        return try_defects(asked.within, asked.cores)
    if asked.kills is not None:
        return try_kills(asked.kills)
    return try_many(asked.count, asked.first, asked.cores)


if __name__ == "__main__":
    sys.exit(main())
