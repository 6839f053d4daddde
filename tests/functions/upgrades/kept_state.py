"""What a release leaves behind in the middle of runs, kept for the tests of all later releases.

    python -m tests.functions.upgrades.kept_state 0.2.0

writes `states/0.2.0.json`. `make release` calls it with the new version. A file that exists is never written
again, since later releases must go on with just that. It has the items of the table as DynamoDB's API has
them, the objects of the runs, what waits (notifications, executions, messages, wake-ups) and the events that
were published.

Of the run `mnist` steps 0 to 3 are evaluated, and the events of step 3 wait in the outbox. Step 4 is complete
and its execution requested; step 5 has the files of one of two workers. The run `done` is finished.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from functions.evaluation.built_in import evaluate
from smdebug.service.step_index.attributes import as_attributes, item_in
from smdebug.service.step_index.item_reader import Item
from tests.functions.saver import FAILING, Saver
from tests.functions.small_world import SmallWorld

STATES = Path(__file__).parent / "states"
PLACES = ("mnist", "done")
RUN = "runs/mnist"
WORKERS = ("worker_0", "worker_1")
RULES = (
    {"name": "exploding", "rule": "ExplodingTensor", "parameters": {"tensor_regex": "gradient"}},
    {
        "name": "same",
        "rule": "UnchangedTensor",
        "parameters": {"tensor_regex": "gradient", "num_steps": "3"},
    },
)
LEFT_AT, LAST = 5, 8  # the step that one worker has not written, and the last of the whole run


def leave_behind() -> SmallWorld:
    """Return a stack in the middle of its runs."""
    small = SmallWorld()
    _finish_one(small)
    begin(small)
    for step in range(3):
        save(small, step)
        small.settle()
    save(small, 3)
    small.deliver()
    for request in small.workflow.started.values():
        reply = evaluate(small.world, RUN, "builtin", request["step"])
        small.events += reply["outbox"]  # published, and its function died before it was marked
    small.workflow.started.clear()
    save(small, 4)
    small.deliver()
    save(small, LEFT_AT, WORKERS[:1])
    small.deliver()
    return small


def go_on(small: SmallWorld) -> None:
    """Let the run go on from there to its end."""
    save(small, LEFT_AT, WORKERS[1:])
    small.settle()
    for step in range(LEFT_AT + 1, LAST + 1):
        save(small, step)
        small.settle()
    for worker in WORKERS:
        closing = _saver(small, worker, LAST + 1)
        closing.end() if worker == WORKERS[-1] else closing.close()
    small.settle()
    small.pass_time(7200)


def straight() -> SmallWorld:
    """Return a stack after the same run, which nothing has interrupted."""
    small = SmallWorld()
    begin(small)
    for step in range(LEFT_AT):
        save(small, step)
        small.settle()
    save(small, LEFT_AT, WORKERS[:1])
    go_on(small)
    return small


def begin(small: SmallWorld) -> None:
    """Begin the run, with its rules."""
    small.place().write("rules.json", json.dumps({"rules": RULES}).encode())
    for worker in WORKERS:
        _saver(small, worker, 0).begin()
    small.settle()


def save(small: SmallWorld, step: int, workers: tuple[str, ...] = WORKERS) -> None:
    """Let workers save a step, each with its own value: NaN at step 3, and the same from step 5 to 7."""
    value = 5 if 5 <= step <= 7 else step
    tensors = FAILING if step == 3 else {"gradient/fc": np.array([0.5, value], np.float32)}
    for worker in workers:
        small.clock.time += 1
        _saver(small, worker, step).save(step, tensors)


def _saver(small: SmallWorld, worker: str, step: int) -> Saver:
    saver = Saver(small.place(), worker, num_workers=len(WORKERS))
    saver._previous = step - 1 if step else None
    return saver


def _finish_one(small: SmallWorld) -> None:
    saver = Saver(small.place("done")).begin()
    saver.save(0)
    saver.end()
    small.settle()
    small.pass_time(7200)
    small.sweep()


# As JSON, in both directions


def items_of(small: SmallWorld) -> list[Item]:
    """Return all items of the table, by their keys."""
    partitions = small.items._partitions
    return [partitions[pk].items[sk] for pk in sorted(partitions) for sk in sorted(partitions[pk].items)]


def as_json(small: SmallWorld) -> dict[str, Any]:
    """Return the state of a stack as JSON."""
    return {
        "now": small.clock.now(),
        "items": [_with_text(as_attributes(item)) for item in items_of(small)],
        "objects": {
            f"{place}/{key}": {
                "body": b64encode(small.place(place).read(key)).decode("ascii"),
                "modified": small.bucket._modified[f"{place}/{key}"],
            }
            for place in PLACES
            for key in small.place(place).list("")
        },
        "notifications": small.bucket.notifications,
        "executions": small.workflow.started,
        "messages": small.checks.waiting,
        "wake_ups": small.schedules.at,
        "events": small.events,
    }


def from_json(state: Mapping[str, Any]) -> SmallWorld:
    """Return a stack in that state."""
    small = SmallWorld()
    small.clock.time = state["now"]
    for item in state["items"]:
        small.items.put(item_in(_with_bytes(item)))
    for path, kept in state["objects"].items():
        place, _, key = path.partition("/")
        small.place(place).write(key, b64decode(kept["body"]))
        small.bucket._modified[path] = kept["modified"]
    small.bucket._written = len(state["objects"])
    small.bucket.notifications = list(state["notifications"])
    small.workflow.started.update(state["executions"])
    small.checks.waiting = [(after, message) for after, message in state["messages"]]
    small.schedules.at.update(state["wake_ups"])
    small.events = list(state["events"])
    return small


def _with_text(attributes: Any) -> Any:
    """Replace bytes by base64."""
    if isinstance(attributes, bytes):
        return b64encode(attributes).decode("ascii")
    if isinstance(attributes, Mapping):
        return {key: _with_text(value) for key, value in attributes.items()}
    if isinstance(attributes, list):
        return [_with_text(value) for value in attributes]
    return attributes


def _with_bytes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the base64 of top-level attributes by bytes; no others hold any."""
    return {
        name: {"B": b64decode(typed["B"])} if "B" in typed else typed for name, typed in attributes.items()
    }


def write(version: str) -> Path:
    """Write the state of this release, unless it is kept already."""
    file = STATES / f"{version}.json"
    with file.open("x", encoding="utf-8") as opened:
        json.dump(as_json(leave_behind()), opened, indent=1, sort_keys=True)
        opened.write("\n")
    return file


if __name__ == "__main__":
    print(write(sys.argv[1]))
