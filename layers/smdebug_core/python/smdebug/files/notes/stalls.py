"""Where a rank is that makes no progress: `stalls/<worker>.stall.json`, written once when it stops moving.

    {"version": 1, "run_id": "…", "training_run": 0, "worker": "worker_1", "state": "stands",
     "step": 412, "phase": "data", "since": 1795229224.5, "seconds": 61.3, "in_phase": 61.3, "limit": 60.0,
     "processor": 0.01, "stack": ["torch.utils.data.dataloader:DataLoader.__next__:733", "__main__:train:41"]}

All times are those of the rank's own clock: compare durations, never `since`, between ranks. The stack has
modules, functions and lines, the innermost first, without values and paths.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.files.names import STALL_SUFFIX, STALLS_FOLDER, file_name_of
from smdebug.files.notes.json_object import object_in
from smdebug.plain_text import escaped
from smdebug.secrets.texts import redacted

VERSION = 1
MAX_BYTES = 1 << 16
MOST_FRAMES = 40
LONGEST_FRAME = 200
STANDS, MOVES, WENT_ON, ENDED = STATES = ("stands", "moves", "went on", "ended")
"""In the same place; passing through the model, but without an update; the stall is over; so is the run."""
PHASES = ("data", "forward", "backward", "update")


def stall_key(worker: str) -> str:
    """Return the key of the file of this worker."""
    return f"{STALLS_FOLDER}{file_name_of(worker)}{STALL_SUFFIX}"


@dataclass(frozen=True)
class Stall:
    """A rank without an update of its model for longer than its limit."""

    worker: str
    state: str
    step: int
    phase: str
    seconds: float
    """How long its last update is ago, by its own clock."""
    in_phase: float
    """How long it has been in this phase."""
    limit: float
    """After how many seconds it wrote the file."""
    since: float = 0.0
    """When its last update was, by its own clock."""
    processor: float | None = None
    """The share of the time in this phase in which its training thread used a processor, if that is known."""
    stack: tuple[str, ...] = ()
    run_id: str = ""
    training_run: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it lasts, as far as the rank has written."""
        return self.state in (STANDS, MOVES)

    def encode(self) -> bytes:
        """Return the content of the file."""
        content = {
            "version": VERSION,
            "run_id": self.run_id,
            "training_run": self.training_run,
            "worker": self.worker,
            "state": self.state,
            "step": self.step,
            "phase": self.phase,
            "since": round(self.since, 3),
            "seconds": round(self.seconds, 3),
            "in_phase": round(self.in_phase, 3),
            "limit": round(self.limit, 3),
            "processor": None if self.processor is None else round(self.processor, 3),
            "stack": [redacted(frame)[:LONGEST_FRAME] for frame in self.stack[:MOST_FRAMES]],
        }
        return (json.dumps(content, ensure_ascii=True) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, place: str) -> Stall:
        """Return the content; `DamagedFile` if it does not say which rank stands, where and for how long."""
        content = object_in(data, place, MAX_BYTES)
        worker, state, step = content.get("worker"), content.get("state"), content.get("step")
        if not isinstance(worker, str) or not worker or state not in STATES or type(step) is not int:
            raise DamagedFile(place, "it does not say which rank makes no progress at which step")
        seconds, limit = _seconds(content, "seconds"), _seconds(content, "limit")
        if seconds is None or not limit:
            raise DamagedFile(place, "it does not say for how long the rank makes no progress")
        phase, stack = content.get("phase"), content.get("stack")
        run_id, training_run = content.get("run_id"), content.get("training_run")
        share = _seconds(content, "processor")
        frames = stack[:MOST_FRAMES] if isinstance(stack, list) else []
        return cls(
            escaped(worker[:LONGEST_FRAME]),
            state,
            step,
            phase if phase in PHASES else "",
            seconds,
            in_phase=_seconds(content, "in_phase") or 0.0,
            limit=limit,
            since=_seconds(content, "since") or 0.0,
            processor=share,
            stack=tuple(
                escaped(redacted(frame[:LONGEST_FRAME])) for frame in frames if isinstance(frame, str)
            ),
            run_id=run_id if isinstance(run_id, str) else "",
            training_run=training_run if type(training_run) is int else 0,
        )


def _seconds(content: dict[str, Any], name: str) -> float | None:
    """Return a number of at least 0; None for anything else."""
    value = content.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
