"""Which run a message of the queue wants stopped, and which words of a job name a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import UnreadableMessage
from smdebug.service.queues.messages import event_in, run_named_in
from smdebug.service.records import STOP_TRAINING

FOUND = "Rule Evaluation Condition Met"


@dataclass(frozen=True)
class StopRequest:
    """A run whose job is to be stopped, and the reason in one line."""

    run: str  # without s3://
    reason: str


def stop_request(message: str) -> StopRequest | None:
    """Return what the event in a message asks to stop; None if it asks for nothing here.

    A SageMaker job is stopped by the debugger itself, and a step to stop at is kept by the hook. Raise
    `UnreadableMessage` for what is no event, and for a finding in a form that is unknown here.
    """
    event = event_in(message)
    if event["detail-type"] != FOUND:
        return None
    run = run_named_in(event)
    detail = event["detail"]
    try:
        if detail.get("job") or not any(
            _ends_a_job(action, detail) for action in detail.get("actions") or ()
        ):
            return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"its actions have another form ({type(error).__name__}: {error})"
        raise UnreadableMessage(f"s3://{run}", problem) from error
    return StopRequest(run, str(detail.get("text") or detail.get("reason") or ""))


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
