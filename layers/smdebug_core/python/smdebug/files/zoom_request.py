"""Zoom requests: the object beside a run that names tensors to save whole for some steps.

    <run>/control/zoom    {"tensors": ["^fc1\\."], "steps": 10, "reason": "…", "finding_id": "…",
                           "workers": ["worker_3"], "run_id": "…", "training_run": 0}

A person, a rule's action or the application writes it; hooks read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from smdebug.secrets.texts import redacted

STEPS = 10
MOST_STEPS = 1000
MOST_PATTERNS = 100
_LONGEST = 64 << 10
_OF_PARAMETER = re.compile(r"^(gradient|update)/")


class ZoomRequest(NamedTuple):
    """Tensors whose names match one of the patterns, to be saved whole for that many steps of training."""

    tensors: tuple[str, ...]
    steps: int = STEPS
    reason: str = ""
    finding_id: str | None = None
    workers: tuple[str, ...] = ()
    """The workers that save them. Without any, the first worker does, and each saves its shards."""
    run_id: str | None = None
    training_run: int | None = None

    def encode(self) -> bytes:
        """Return the content of the object."""
        shown = self._replace(reason=redacted(self.reason))
        given = {name: value for name, value in shown._asdict().items() if value not in (None, ())}
        return (json.dumps(given, ensure_ascii=False, indent=2) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes) -> ZoomRequest:
        """Return the request in the object; raise `ValueError` with the problem if it holds none."""
        if len(data) > _LONGEST:
            raise ValueError(f"it has {len(data)} bytes, and more than {_LONGEST} are not read")
        try:
            content = json.loads(data)
        except RecursionError:
            raise ValueError("its JSON is nested too deeply") from None
        if not isinstance(content, Mapping):
            raise ValueError("it is not a JSON object with tensors and steps")
        tensors = _texts(content, "tensors")
        if not 1 <= len(tensors) <= MOST_PATTERNS:
            raise ValueError(f"tensors must be 1 to {MOST_PATTERNS} patterns, not {len(tensors)}")
        steps = content.get("steps", STEPS)
        if type(steps) is not int or not 1 <= steps <= MOST_STEPS:
            raise ValueError(f"steps must be 1 to {MOST_STEPS}, not {steps!r:.40}")
        training_run = content.get("training_run")
        return cls(
            tensors,
            steps,
            _text(content, "reason") or "",
            _text(content, "finding_id"),
            _texts(content, "workers"),
            _text(content, "run_id"),
            training_run if type(training_run) is int else None,
        )


def patterns_for(names: Iterable[str], most: int = 20) -> tuple[str, ...]:
    """Return patterns for these tensors; each matches a parameter with its gradient and its update."""
    bare = dict.fromkeys(_OF_PARAMETER.sub("", name) for name in names)
    return tuple(f"^(gradient/|update/)?{re.escape(name)}$" for name in list(bare)[:most])


def _text(content: Mapping[str, Any], key: str) -> str | None:
    value = content.get(key)
    if not isinstance(value, str):
        return None
    return "".join(letter if letter.isprintable() else " " for letter in value[:500]).strip() or None


def _texts(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = content.get(key)
    listed = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not all(isinstance(text, str) and text for text in listed):
        raise ValueError(f"{key} must be a list of texts, not {value!r:.80}")
    return tuple(listed)
