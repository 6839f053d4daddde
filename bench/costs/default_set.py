"""The cost of a step of the default plan that the default set of rules evaluates, counted like any other."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.costs.bill import dollars_of, stored_bytes
from bench.default_rules import write_run
from smdebug.files.names import END_MARKER, step_file
from smdebug.storage.folder import FolderStorage

PROMISED = 19.0
"""Dollars per million saved steps."""
STEPS, FIRST, TENSORS = 60, 5, 200
RUN = "experiments/default"


def counted(new_world: Callable[[], Any]) -> tuple[Any, int]:
    """Return the bill of the steps after the first ones, and their number."""
    world = new_world()
    place, stored = world.place(RUN), 0
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as folder:
        write_run(str(Path(folder) / "run"), FIRST + STEPS, TENSORS)
        saved = FolderStorage(Path(folder) / "run")
        steps = _files_of_steps(saved)
        for key in saved.list(""):
            if not any(key in keys for keys in steps.values()) and key != END_MARKER:
                place.write(key, bytes(saved.read(key)))
        world.settle()
        for number, step in enumerate(sorted(steps)):
            if number == FIRST:  # the first steps create what later ones reuse
                world.bill.used.clear()
                stored = stored_bytes(world.items)
            for key in sorted(steps[step]):  # events/ before index/
                place.write(key, bytes(saved.read(key)))
            world.bucket.hold_back("/state/")  # of these the bucket notifies nobody
            world.ingest([[message] for message in world.bucket.notifications])
            world.evaluate()
            world.bucket.hold_back("/state/")
            world.clock.time += 1
    group = world.index.groups.get(f"runs/{RUN}", "builtin")
    assert group is not None
    assert group.cursor == max(steps), "not every step was evaluated"
    world.bill.used["table byte"] = stored_bytes(world.items) - stored
    return world.bill, len(group.rules)


def report(new_world: Callable[[], Any]) -> Iterator[str]:
    """Print the row; yield the promises that do not hold."""
    with contextlib.redirect_stdout(io.StringIO()):
        bill, rules = counted(new_world)
    dollars = dollars_of(bill, STEPS)
    total = sum(dollars.values())
    print(
        f"\nThe default set, {rules} rules, on steps of the default plan that measure "
        f"{TENSORS} tensors; dollars per million saved steps:\n"
    )
    print("".join(column.rjust(13) for column in (*dollars, "all", "promised", "GB-s", "S3 PUTs")))
    cells = [*(f"{each:,.2f}" for each in dollars.values()), f"{total:,.2f}", f"<= {PROMISED:,.0f}"]
    cells += [f"{bill['GB-second'] / STEPS:.3f}", f"{bill['S3 PUT'] / STEPS:.2f}"]
    print("".join(cell.rjust(13) for cell in cells))
    if total > PROMISED:
        yield f"the default set costs ${total:,.2f}, promised are ${PROMISED:,.0f}"


def _files_of_steps(saved: FolderStorage) -> dict[int, list[str]]:
    found: defaultdict[int, list[str]] = defaultdict(list)
    for key in saved.list(""):
        if key.startswith("events/"):
            found[int(key.split("/")[1])].append(key)
        elif (name := step_file(key)) is not None:
            found[name.step].append(key)
    return dict(found)
