"""The local stack kept up, for trainings and questions from other terminals."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.aws import LocalAws


def serve(
    *,
    port: int = 0,
    settings: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
    until: threading.Event | None = None,
) -> int:
    """Start the stack, say what to set in other terminals, and wait for Ctrl-C (or for `until`)."""
    stop = until or threading.Event()
    say("Starting the debugger on this machine ...")
    if until is None:
        for asked in (signal.SIGINT, signal.SIGTERM):
            signal.signal(asked, lambda *_: stop.set())
    with LocalAws(settings, port=port) as aws:
        say(f"It is up at {aws.endpoint}. In another terminal, set:\n")
        for line in exports(aws.environment):
            say(f"  {line}")
        say(
            f"\nSave to s3://{aws.bucket}/<run>, and the rules look. Ctrl-C ends it, and removes all of it."
        )
        stop.wait()
    say("\nStopped. Nothing was left behind.")
    return 0


def exports(environment: Mapping[str, str]) -> list[str]:
    """The environment as lines for a shell."""
    return [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
