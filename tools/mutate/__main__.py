"""Edits a room of the code on purpose and says which edits no test of the room notices."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tools.mutate.edits import Edit, distinct, edits_of
from tools.mutate.rooms import ROOMS, room_of
from tools.mutate.running import Copy, TestsByLine

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
WANTED = 0.9


class Tried(NamedTuple):
    """An edit and what the tests said."""

    file: str
    edit: Edit
    is_noticed: bool | None

    def __str__(self) -> str:
        why = "no test executes it" if self.is_noticed is None else "no test notices"
        return f"{self.file}:{self.edit.line} {self.edit.where}: {self.edit.what}  ({why})"


def equivalent_edits() -> set[tuple[str, str, str]]:
    """Return the edits that change no answer: file, function and edit, as they are printed."""
    listed = set()
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, where, what = line.split(" | ")[:3]
            listed.add((file, where, what))
    return listed


def candidates(code: Sequence[str], only: str) -> Iterator[tuple[str, Edit]]:
    """Yield all edits of the modules in these folders."""
    known = equivalent_edits()
    for folder in code:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            source = path.read_bytes()
            for edit in distinct(edits_of(source), source) if only in file else ():
                if (file, edit.where, edit.what) not in known:
                    yield file, edit


def try_all(
    chosen: Sequence[tuple[str, Edit]], copies: Sequence[Copy], tests: TestsByLine
) -> Iterator[Tried]:
    """Try the edits, in as many copies at once; yield each when it is done."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_one(which: tuple[str, Edit]) -> Tried:
        file, edit = which
        copy = free.get()
        try:
            last_line = edit.line + (ROOT / file).read_bytes()[edit.begin : edit.end].count(b"\n")
            return Tried(file, edit, copy.is_noticed(file, edit, tests, last_line))
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        yield from threads.map(try_one, chosen)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the edits that survive; return 1 if more than one of ten does."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("room", help=f"{', '.join(ROOMS)}, or a folder of the library with tests of its name")
    parser.add_argument("--sample", type=int, default=60, help="edits to try (60); 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="chooses the edits (0)")
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(argv)
    room = room_of(options.room, ROOT)
    if room is None:
        parser.error(f"There is no room {options.room!r}. Choose one of {', '.join(ROOMS)}.")
    chosen = list(candidates(room.code, options.only))
    total = len(chosen)
    if options.sample and options.sample < total:
        chosen = random.Random(options.seed).sample(chosen, options.sample)  # noqa: S311 - repeatable
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copies = [Copy(ROOT, Path(folder) / str(number)) for number in range(max(1, options.processes))]
        print(f"{options.room}: {total:,} edits. Running the tests once ...", flush=True)
        tests = copies[0].tests_by_line(room.code, room.tests, options.processes)
        print(f"{len(tests.seconds):,} tests. Trying {len(chosen):,} edits ...", flush=True)
        tried = []
        for number, edited in enumerate(try_all(chosen, copies, tests), start=1):
            tried.append(edited)
            if not edited.is_noticed:
                print(f"\r{edited}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(chosen)}", end="", file=sys.stderr, flush=True)
    noticed = sum(bool(edited.is_noticed) for edited in tried)
    share = noticed / len(tried) if tried else 1.0
    print(f"{options.room}: {noticed} of {len(tried)} edits were noticed ({share:.0%}; {WANTED:.0%} wanted)")
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
