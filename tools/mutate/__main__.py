"""Edits a room of the code on purpose and says which edits no test of the room notices."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tools.mutate.edits import Edit, distinct, edits_of
from tools.mutate.journal import Journal, fingerprint
from tools.mutate.rooms import ROOMS, Room, room_of
from tools.mutate.running import Copy, TestsByLine, Unsound, tests_by_line

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
WANTED = 0.9
_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


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


def modules_of(code: Sequence[str]) -> list[Path]:
    """Return the modules in these folders."""
    return [path for folder in code for path in sorted((ROOT / folder).rglob("*.py"))]


def candidates(code: Sequence[str], only: str) -> Iterator[tuple[str, Edit]]:
    """Yield all edits of the modules in these folders."""
    known = equivalent_edits()
    for path in modules_of(code):
        file = str(path.relative_to(ROOT))
        source = path.read_bytes()
        for edit in distinct(edits_of(source), source) if only in file else ():
            if (file, edit.where, edit.what) not in known:
                yield file, edit


def chosen_of(edits: list[tuple[str, Edit]], count: int, seed: int) -> list[tuple[str, Edit]]:
    """Return so many edits at random, the same for the same seed; all of them for 0."""
    if not count or count >= len(edits):
        return edits
    return random.Random(seed).sample(edits, count)  # noqa: S311 - repeatable


class Progress:
    """A line that says how far it is and how long the rest will take."""

    def __init__(self, what: str, total: int):
        self._what, self._total, self._done = what, total, 0
        self._begun = self._said = time.monotonic()

    def add(self) -> None:
        """Count one more, and say so: on a terminal at once, in a file every half a minute."""
        self._done += 1
        now = time.monotonic()
        is_terminal = sys.stderr.isatty()
        if not is_terminal and now - self._said < 30 and self._done < self._total:
            return
        self._said = now
        left = (now - self._begun) / self._done * (self._total - self._done)
        line = f"{self._what}: {self._done} of {self._total}, {left / 60:.0f} min left"
        print(
            f"\r{line} " if is_terminal else line,
            end="" if is_terminal else "\n",
            file=sys.stderr,
            flush=True,
        )


def in_copies(
    work: Callable[[Copy, _Task], _Done], tasks: Sequence[_Task], copies: Sequence[Copy]
) -> Iterator[_Done]:
    """Do the tasks in as many copies at once; yield what each gives, in their order."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def do(task: _Task) -> _Done:
        copy = free.get()
        try:
            return work(copy, task)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        yield from threads.map(do, tasks)


def journals(room: Room, name: str) -> tuple[Journal, Journal]:
    """Return what is known of the edits, and of the lines that each file of tests executes.

    The first is forgotten with any other source, the second only with other code or helpers of the tests.
    """
    sources = modules_of([*room.code, "tests"])
    helpers = [path for path in sources if not path.name.startswith("test_")]
    folder = ROOT / "build" / "mutate"
    return (
        Journal(folder / name, fingerprint(ROOT, sources)),
        Journal(folder / f"{name}.lines", fingerprint(ROOT, helpers)),
    )


def traced(copies: Sequence[Copy], journal: Journal, apart: Mapping[str, str]) -> TestsByLine:
    """Run each file of tests that has changed once, and note which lines each test executes."""
    files = [list(tests) for _, tests in groupby(copies[0].tests, lambda test: test.partition("::")[0])]
    progress = Progress("Running the tests once", len(files))

    def trace(copy: Copy, tests: list[str]) -> dict[str, Any]:
        file = tests[0].partition("::")[0]
        key = f"{file} {fingerprint(ROOT, [ROOT / file])}"
        if key not in journal:
            journal.keep(key, copy.trace(tests))
        progress.add()
        return journal[key]

    return tests_by_line(copies, in_copies(trace, files, copies), apart)


def try_all(
    chosen: Sequence[tuple[str, Edit]],
    copies: Sequence[Copy],
    tests: TestsByLine,
    journal: Journal,
    most_seconds: float,
) -> Iterator[Tried]:
    """Try the edits; yield each when it is done."""
    progress = Progress("Trying edits", len(chosen))

    def attempt(copy: Copy, which: tuple[str, Edit]) -> Tried | None:
        file, edit = which
        key = f"{file} {edit.begin} {edit.end} {edit.text}"
        if key not in journal:
            last_line = edit.line + (ROOT / file).read_bytes()[edit.begin : edit.end].count(b"\n")
            try:
                journal.keep(key, copy.is_noticed(file, edit, tests, last_line, most_seconds))
            except Unsound as problem:
                print(f"Left out: {file}:{edit.line}: {problem} and others fail without it", flush=True)
        progress.add()
        return Tried(file, edit, journal[key]) if key in journal else None

    yield from filter(None, in_copies(attempt, chosen, copies))


def parsed(argv: Sequence[str] | None) -> tuple[argparse.Namespace, Room]:
    """Return the options, and the room whose code and tests they name."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("room", help=f"{', '.join(ROOMS)}, or a folder of the library with tests of its name")
    parser.add_argument("--count", type=int, default=60, help="number of edits to try (60); 0 for all")
    parser.add_argument(
        "--share", type=float, help="share of all edits to try, such as 0.1, instead of --count"
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses the edits (0)")
    parser.add_argument("--only", default="", help="edit only modules whose path contains this")
    parser.add_argument("--tests", action="append", help="run these tests instead of the room's; repeatable")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one edit at most (60)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(argv)
    room = room_of(options.room, ROOT)
    if room is None:
        parser.error(f"There is no room {options.room!r}. Choose one of {', '.join(ROOMS)}.")
    if options.share is not None and not 0 < options.share <= 1:
        parser.error("--share is more than 0 and at most 1.")
    missing = [path for path in options.tests or () if not (ROOT / path.partition("::")[0]).exists()]
    if missing:
        parser.error(f"There is no {missing[0]}.")
    return options, room._replace(tests=options.tests) if options.tests else room


def main(argv: Sequence[str] | None = None) -> int:
    """Print the edits that survive; return 1 if more than one of ten does."""
    options, room = parsed(argv)
    everything = list(candidates(room.code, options.only))
    count = options.count if options.share is None else max(1, round(options.share * len(everything)))
    chosen = chosen_of(everything, count, options.seed)
    print(f"{options.room}: {len(chosen):,} of {len(everything):,} edits, seed {options.seed}.", flush=True)
    journal, lines = journals(room, "-".join([options.room, *(options.tests or ())]).replace("/", "."))
    tried = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder, ExitStack() as ending:
        copies = [
            ending.enter_context(closing(Copy(ROOT, Path(folder) / str(number), room.code, room.tests)))
            for number in range(max(1, options.processes))
        ]
        for edited in try_all(chosen, copies, traced(copies, lines, room.apart), journal, options.seconds):
            tried.append(edited)
            if not edited.is_noticed:
                print(edited, flush=True)
    noticed = sum(bool(edited.is_noticed) for edited in tried)
    share = noticed / len(tried) if tried else 1.0
    print(f"{options.room}: {noticed} of {len(tried)} edits were noticed ({share:.0%}; {WANTED:.0%} wanted)")
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
