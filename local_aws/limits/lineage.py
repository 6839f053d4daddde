"""Lambda's detection of recursive loops: a chain of calls that come back to a function is cut.

A message that a function sends, or an object that it writes, belongs to the chain of the invocation that did
so; the SDK passes this on by itself. A state machine, a schedule and an event bus begin a new chain.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from local_aws.limits.replacing import replace

Lineage = Mapping[str, int]  # a function -> how often it was called in the chain
NEW: Lineage = {}


class Lineages:
    """Which chain each environment, request and message belongs to."""

    def __init__(self, most: int):
        self._most = most
        self._of_environment: dict[str, Lineage] = {}
        self._of_message: dict[str, Lineage] = {}
        self._request = threading.local()

    def next(self, messages: Iterable[str], function: str) -> Lineage | None:
        """The chain of an invocation with these messages; None if Lambda would not make it."""
        merged: dict[str, int] = {}
        for message in messages:
            for name, times in self._of_message.get(message, NEW).items():
                merged[name] = max(times, merged.get(name, 0))
        merged[function] = merged.get(function, 0) + 1
        return merged if merged[function] <= self._most else None

    def begin(self, environment: str, lineage: Lineage) -> None:
        """An environment now works for this chain."""
        self._of_environment[environment] = lineage

    @contextmanager
    def request_of(self, environment: str) -> Iterator[None]:
        """Everything sent in this block, by this thread, belongs to the environment's chain."""
        self._request.lineage = self._of_environment.get(environment, NEW)
        try:
            yield
        finally:
            self._request.lineage = NEW

    def sent(self, message: str) -> None:
        """A message was sent by the request that this thread handles."""
        lineage = getattr(self._request, "lineage", NEW)
        if lineage:
            self._of_message[message] = lineage


def follow_messages(lineages: Lineages) -> None:
    """Note the chain of every message; moto knows of none."""
    from moto.sqs.models import SQSBackend

    def limited(send: Callable[..., Any]) -> Any:
        def followed(*args: Any, **kwargs: Any) -> Any:
            message = send(*args, **kwargs)
            lineages.sent(message.id)
            return message

        return followed

    replace(SQSBackend, "send_message", limited)
