"""What an agent learns from `smdebug mcp`: a scripted policy that reads the answers of its tools and no file.

    make verdicts-agent                       # on the recordings of the last `make verdicts`
    make verdicts-agent ARGS="DIR --jobs 1"

The policy asks for the diagnosis of each run, and reads nothing but the text of the answers. It
names the cause of the first problem, or that nothing is wrong if the verdict says so. A faulty training that
the hook did not see counts as one that was not named.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from corpus.cases import Fault
from corpus.measuring.page import HALVES, table
from corpus.measuring.recording import NOTE, ROOT
from corpus.measuring.scores import Share
from corpus.measuring.zoo import Trained, trainings
from smdebug.ui.agents.bounding import text_of, tokens
from smdebug.ui.agents.tools import Tools, answered

NOTHING_WRONG = "nothing wrong"
NOT_RECORDED = "no run"
LEAST_NAMED = 0.9
MOST_TOKENS = 2000


@dataclass(frozen=True)
class Named:
    """What the policy named, and how large the answers were that it read."""

    name: str
    is_faulty: bool
    held_out: bool
    said: str
    right: tuple[str, ...]
    tokens: int = 0

    @property
    def is_right(self) -> bool:
        return self.said in self.right


class Reader:
    """Calls tools as an agent does: all it gets is the text of the answer."""

    def __init__(self, tools: Tools):
        self._tools = tools
        self.largest = 0

    def read(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what the text of the answer says."""
        text = text_of(answered(getattr(self._tools, tool), arguments)[0])
        self.largest = max(self.largest, tokens(text))
        answer: dict[str, Any] = json.loads(text)
        return answer


def named_by_the_policy(reader: Reader, run: str) -> str:
    """Return the cause that the policy names, or the verdict if there is no problem."""
    answer = reader.read("diagnose", run=run)
    if answer.get("problems"):
        problem = answer["problems"][0]
        reader.read("around", run=run, step=problem["since"])  # what changed there, to report it
        return str(problem["cause"])
    return str(answer.get("verdict") or answer.get("error"))


@dataclass(frozen=True)
class Asked:
    """A training of which the policy is asked, and what is known of it."""

    name: str
    is_faulty: bool
    held_out: bool
    right: tuple[str, ...]
    place: str


def asked_of(trained: Trained, folder: Path) -> Asked:
    """Return what is known of a training whose recordings are below the folder."""
    is_faulty = trained.kind == "faulty"
    right = trained.case.causes if isinstance(trained.case, Fault) and is_faulty else (NOTHING_WRONG,)
    place = folder / trained.kind / trained.case.name.replace(" ", "-")
    return Asked(trained.name, is_faulty, trained.case.held_out, right, str(place))


def measured(asked: Asked) -> list[Named]:
    """Return what the policy names of the kept recordings of a training."""
    note = json.loads((Path(asked.place) / NOTE).read_text())
    reader = Reader(Tools([asked.place]))
    known = partial(Named, asked.name, asked.is_faulty, asked.held_out, right=asked.right)
    found = []
    for _, where in note["runs"]:
        said = named_by_the_policy(reader, Path(where).name)
        found.append(known(said, tokens=reader.largest))
    missing = set(range(int(note["seeds"]))) - {int(seed) for seed, _ in note["runs"]}
    return found + [known(NOT_RECORDED)] * (len(missing) if asked.is_faulty else 0)


def share(found: Sequence[Named], *, is_faulty: bool, half: str) -> Share:
    """Return how many of the runs of a half were named rightly."""
    chosen = [
        each.is_right
        for each in found
        if each.is_faulty == is_faulty and half in ("all", "held out" if each.held_out else "tuning")
    ]
    return Share(sum(chosen), len(chosen))


def shares(found: Sequence[Named]) -> Iterator[str]:
    """Return the shares as a table in Markdown."""
    kinds = ((True, "the cause of a failing run"), (False, "that nothing is wrong"))
    rows = [
        (label, *(str(share(found, is_faulty=is_faulty, half=half)) for half in ("all", *HALVES)))
        for is_faulty, label in kinds
    ]
    return table(("", "all", *HALVES), rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the shares, and what was named wrongly; return 1 if they are below what is promised."""
    parser = argparse.ArgumentParser(prog="python -m corpus.measuring.agent", description=__doc__)
    default = ROOT / "build" / "verdicts"
    parser.add_argument("keep", type=Path, nargs="?", default=default, help="folder of the recorded runs")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (one per core)"
    )
    parser.add_argument("--only", metavar="NAME", help="only programs whose name contains NAME")
    options = parser.parse_args(argv)
    every = (asked_of(trained, options.keep) for trained in trainings(only=options.only))
    kept = [asked for asked in every if (Path(asked.place) / NOTE).is_file()]
    if not kept:
        parser.error(f"no recordings are kept in {options.keep}: `make verdicts` makes them")
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as judges:
        found = [named for of_training in judges.map(measured, kept) for named in of_training]
    for named in found:
        if not named.is_right:
            print(f"{named.name}: {named.said}, not {' or '.join(named.right)}")
    largest = max(named.tokens for named in found)
    print("\n".join([*shares(found), f"The largest answer had {largest:,} tokens at most."]))
    faulty = share(found, is_faulty=True, half="all")
    healthy = share(found, is_faulty=False, half="all")
    is_kept = faulty.count >= LEAST_NAMED * faulty.total and healthy.count == healthy.total
    return 0 if is_kept and largest < MOST_TOKENS else 1


if __name__ == "__main__":
    raise SystemExit(main())
