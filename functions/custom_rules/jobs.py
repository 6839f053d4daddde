"""What a claim hands to the function that runs the rule, and what it remembers of it for the commit.

Both are plain data on their way through the state machine, which carries 256 KB at most.
"""

from __future__ import annotations

import json
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from smdebug.exceptions import SMDebugValueError

STEPS_A_CLAIM = 25
LARGEST_ANSWER = 200_000  # bytes
LARGEST_PACKED = 80_000
HISTORY = (100, 25, 0)  # steps looked back at without asking S3, as far as there is room

WORK_SECONDS = 45.0  # no step is begun after so much work
SECONDS = 95.0  # and none lasts longer, all of it together
MEMORY_MB = 768


@dataclass(frozen=True)
class ClaimedStep:
    """A step that was due: what the commit has to know of it."""

    step: int
    passed: tuple[int, ...] = ()  # those before it that were given up
    missing: int | None = None  # below this one, nobody can tell which those are
    late: bool = False
    asked: bool = True  # does the rule look at it?
    mode: str | None = None
    mode_step: int | None = None
    saved: float | None = None
    uploaded: float = 0.0
    indexed: float = 0.0
    workers: tuple[str, ...] = ()  # who wrote it; only the run has to know


@dataclass(frozen=True)
class Claimed:
    """What was claimed, for the commit. It does not pass through the function that runs the rule."""

    token: int
    rule: str
    training_run: int
    steps: tuple[ClaimedStep, ...]
    more: bool
    ended: bool
    source_digest: str = ""
    at_end: bool = False  # it is about the run that ended with the step, not about the step

    @property
    def asked(self) -> tuple[int, ...]:
        """The steps that the rule was to look at, in their order."""
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
        return {**claim, "steps": steps}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Claimed:
        known = {known_field.name for known_field in fields(ClaimedStep)}
        steps = tuple(
            ClaimedStep(
                **{
                    "asked": False,
                    **{key: value for key, value in step.items() if key in known},
                    "passed": tuple(step.get("passed", ())),
                }
            )
            for step in payload["steps"]
        )
        return cls(**{**payload, "steps": steps})


def packed(value: Any) -> str:
    """Plain data as a short text."""
    plain = json.dumps(value, separators=(",", ":")).encode()
    return b64encode(lzma.compress(plain, preset=6)).decode("ascii")


def unpacked(text: str) -> Any:
    """What `packed` was given."""
    try:
        return json.loads(lzma.decompress(b64decode(text, validate=True)))
    except (lzma.LZMAError, ValueError) as error:
        raise SMDebugValueError(f"This is no part of a job: {error}") from error


def steps_with_workers(steps: Iterable[ClaimedStep]) -> dict[str, Any]:
    """The steps with who wrote them. Most were written by the same workers, who are named once."""
    steps = list(steps)
    workers = list(dict.fromkeys(step.workers for step in steps))
    at = {names: position for position, names in enumerate(workers)}
    return {
        "workers": [list(names) for names in workers],
        "steps": [[step.step, at[step.workers]] for step in steps],
    }
