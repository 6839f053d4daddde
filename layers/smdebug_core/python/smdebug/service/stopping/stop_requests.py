"""Which run a message of the queue wants stopped, and which words of a job name a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from smdebug.service.records import STOP_TRAINING

FOUND = "Rule Evaluation Condition Met"


@dataclass(frozen=True)
class StopRequest:
    """A run whose job is to be stopped, and the reason in one line."""

    run: str  # without s3://
    reason: str


def stop_request(message: str) -> StopRequest | None:
    """Return what the event in a message asks to stop; None if it asks for nothing here.

    A SageMaker job is stopped by the debugger itself, and a step to stop at is kept by the hook.
    """
    try:
        event = json.loads(message)
        detail = event["detail"]
        is_finding = event["detail-type"] == FOUND
        actions = [action for action in detail.get("actions") or () if _ends_a_job(action, detail)]
        if not is_finding or detail.get("job") or not actions:
            return None
        return StopRequest(str(detail["run"]), str(detail.get("text") or detail.get("reason") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _ends_a_job(action: dict[str, Any], detail: dict[str, Any]) -> bool:
    later = (action.get("stop_at_step") or 0) > int(detail.get("step") or 0)
    return action["name"] == STOP_TRAINING and not action.get("training_job_prefix") and not later


def named_in(words: Iterable[Any]) -> Iterator[str]:
    """Yield the runs whose addresses are among the words, or behind a `=` in one."""
    for word in map(str, words):
        for address in (word, word.partition("=")[2]):
            scheme, _, place = address.partition("://")
            if scheme == "s3":
                yield place.rstrip("/")
