"""Where a training has saved its weights: `checkpoints.json`, written anew with each checkpoint.

    {"version": 1, "run_id": "…",
     "checkpoints": [{"step": 699, "path": "out/checkpoint-700", "time": 1764000000.0}]}

A checkpoint has the weights as they are after its step. A reader needs no key but `step` and `path`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.files.names import CHECKPOINTS
from smdebug.secrets.texts import redacted

VERSION = 1
MAX_BYTES = 1 << 20
MOST = 200
"""How many are kept. Of more, every other of the older half is left out."""
LONGEST_PATH = 2000


@dataclass(frozen=True)
class Checkpoint:
    """Weights that the training has saved."""

    step: int
    """The last step whose update is in them; -1 if they were saved before the first."""
    path: str
    time: float = 0.0
    """When it was marked, in seconds of the epoch."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, payload: Any) -> Checkpoint | None:
        """Return the checkpoint in JSON; None if there is none."""
        if not isinstance(payload, dict):
            return None
        step, path, time = (payload.get(name) for name in ("step", "path", "time"))
        if type(step) is not int or step < -1 or not isinstance(path, str) or not path:
            return None
        is_time = isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time)
        return cls(step, path[:LONGEST_PATH], float(time) if is_time and time is not None else 0.0)


def last_before(checkpoints: Iterable[Checkpoint], step: int) -> Checkpoint | None:
    """Return the last checkpoint of an earlier step; None if there is none."""
    earlier = [checkpoint for checkpoint in checkpoints if checkpoint.step < step]
    return max(earlier, key=lambda checkpoint: (checkpoint.step, checkpoint.time), default=None)


def with_another(known: Sequence[Checkpoint], new: Checkpoint) -> list[Checkpoint]:
    """Return the checkpoints and a new one, which replaces one at the same path."""
    kept = [checkpoint for checkpoint in known if checkpoint.path != new.path]
    if len(kept) >= MOST:
        half = len(kept) // 2
        kept = [*kept[:half:2], *kept[half:]]
    return [*kept, new]


def encode_checkpoints(run_id: str, checkpoints: Iterable[Checkpoint]) -> bytes:
    """Return the content of the file, without secrets in its paths."""
    listed = [{**item.to_dict(), "path": redacted(item.path)} for item in checkpoints]
    content = {"version": VERSION, "run_id": run_id, "checkpoints": listed}
    return (json.dumps(content, ensure_ascii=True, indent=1, allow_nan=False) + "\n").encode()


def parse_checkpoints(data: bytes, place: str = CHECKPOINTS) -> list[Checkpoint]:
    """Return the checkpoints in the file, in the order of their steps; `DamagedFile` if it is none.

    Entries of a form that this version does not know are left out, and so are secrets in paths.
    """
    if len(data) > MAX_BYTES:
        raise DamagedFile(place, f"it has more than the {MAX_BYTES} bytes that are read")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(place, f"its JSON cannot be read: {error}") from error
    listed = content.get("checkpoints") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise DamagedFile(place, 'its JSON has no list of "checkpoints"')
    read = [checkpoint for entry in listed if (checkpoint := Checkpoint.from_dict(entry))]
    found = [replace(checkpoint, path=redacted(checkpoint.path)) for checkpoint in read]
    return sorted(found, key=lambda checkpoint: checkpoint.step)
