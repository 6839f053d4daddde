"""The job of the function that runs a rule, and what its commit has to know of the claim.

Both pass through the state machine as plain data, of at most 256 KB.
"""

from __future__ import annotations

import json
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.files.notes.checkpoints import Checkpoint

STEPS_A_CLAIM = 25
LARGEST_ANSWER = 200_000  # bytes
LARGEST_PACKED = 80_000
LARGEST_CHECKPOINTS = 10_000
HISTORY = (100, 25, 0)  # earlier steps described in the job, as far as there is room

WORK_SECONDS = 45.0  # no further step is evaluated after this time
SECONDS = 95.0  # the limit of a whole job
MEMORY_MB = 768


@dataclass(frozen=True)
class ClaimedStep:
    """A due step, as far as the commit has to know it."""

    step: int
    passed: tuple[int, ...] = ()  # earlier steps that were given up
    lost: tuple[int, ...] = ()  # those of them that a worker has saved
    late: bool = False
    partly: bool = False  # some workers have not saved it
    asked: bool = True  # the rule evaluates it
    mode: str | None = None
    mode_step: int | None = None
    saved: float | None = None
    uploaded: float = 0.0
    indexed: float = 0.0
    workers: tuple[str, ...] = ()  # for the job; the commit does not need them


@dataclass(frozen=True)
class Claimed:
    """The claim, for the commit. It does not pass through the function that runs the rule."""

    token: int
    rule: str
    training_run: int
    steps: tuple[ClaimedStep, ...]
    more: bool
    ended: bool
    source_digest: str = ""
    at_end: bool = False  # evaluates the whole run, which ended with the step
    reserved: Mapping[str, Any] = field(default_factory=dict)  # of the run's budget
    checkpoints: tuple[Checkpoint, ...] = ()  # of the run, whose files the commit may not read

    @property
    def asked(self) -> tuple[int, ...]:
        """The steps that the rule evaluates, in order."""
        return tuple(step.step for step in self.steps if step.asked)

    def to_dict(self) -> dict[str, Any]:
        claim = asdict(self)
        steps = [
            {
                key: value
                for key, value in asdict(step).items()
                if key != "workers" and value is not None and value is not False and value != ()
            }
            for step in self.steps
        ]
        return {**claim, "steps": steps, "checkpoints": _packed_checkpoints(self.checkpoints)}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Claimed:
        known = {known_field.name for known_field in fields(ClaimedStep)}
        steps = tuple(
            ClaimedStep(
                **{
                    "asked": False,
                    **{key: value for key, value in step.items() if key in known},
                    "passed": tuple(step.get("passed", ())),
                    "lost": tuple(step.get("lost", ())),
                }
            )
            for step in payload["steps"]
        )
        known = {claimed.name for claimed in fields(cls)}
        given = {key: value for key, value in payload.items() if key in known}
        marked = unpacked(given["checkpoints"]) if given.get("checkpoints") else []
        checkpoints = tuple(Checkpoint(*entry) for entry in marked)
        return cls(**{**given, "steps": steps, "checkpoints": checkpoints})


def _packed_checkpoints(checkpoints: Iterable[Checkpoint]) -> str:
    """Return them as a short text; without room for all, every other of them and always the last."""
    kept = [[item.step, item.path, item.time] for item in checkpoints]
    while kept:
        text = packed(kept)
        if len(text) <= LARGEST_CHECKPOINTS:
            return text
        kept = kept[::-2][::-1] if len(kept) > 1 else []
    return ""


def packed(value: Any) -> str:
    """Return plain data as a short text."""
    plain = json.dumps(value, separators=(",", ":")).encode()
    return b64encode(lzma.compress(plain, preset=6)).decode("ascii")


def unpacked(text: str) -> Any:
    """Return the data in a text from `packed`."""
    try:
        return json.loads(lzma.decompress(b64decode(text, validate=True)))
    except (lzma.LZMAError, ValueError) as error:
        raise SMDebugValueError(f"This is not part of a job: {error}") from error


def steps_with_workers(steps: Iterable[ClaimedStep]) -> dict[str, Any]:
    """Return the steps with their workers. Each set of workers is listed once, as most steps share one."""
    steps = list(steps)
    workers = list(dict.fromkeys(step.workers for step in steps))
    at = {names: position for position, names in enumerate(workers)}
    return {
        "workers": [list(names) for names in workers],
        "steps": [[step.step, at[step.workers]] for step in steps],
    }
