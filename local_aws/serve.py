"""The local stack kept up, for trainings and questions from other terminals."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from local_aws.aws import LocalAws
from local_aws.errors import INTERRUPTED, LocalStackError, complain


def serve(
    *,
    port: int = 0,
    settings: Mapping[str, Any] | None = None,
    as_json: bool = False,
    say: Callable[[str], None] | None = None,
    until: threading.Event | None = None,
) -> int:
    """Start the stack, say what to set in other terminals, and wait for Ctrl-C (or for `until`).

    As JSON it is one line, when the stack is up, and nothing else.
    """
    say = say or _say
    stop = until or threading.Event()
    starting = True

    def end(*_: object) -> None:
        if starting and not stop.is_set():  # the second time it is ending already
            stop.set()
            raise KeyboardInterrupt
        stop.set()

    aws = LocalAws(settings, port=port)
    try:
        if until is None:
            for asked in (signal.SIGINT, signal.SIGTERM):
                signal.signal(asked, end)
        if not as_json:
            say("Starting the debugger on this machine ...")
        aws.start()
        starting = False
        for line in [as_data(aws)] if as_json else in_words(aws):
            say(line)
        stop.wait()
    except KeyboardInterrupt:
        print("Interrupted. Nothing was left behind.", file=sys.stderr)
        return INTERRUPTED
    except LocalStackError as error:
        return complain(error, as_json=as_json)
    finally:
        aws.stop()
    if not as_json:
        say("\nStopped. Nothing was left behind.")
    return 0


def as_data(aws: LocalAws) -> str:
    """What a program that has started the stack has to know, in one line."""
    told = {"endpoint": aws.endpoint, "bucket": aws.bucket, "environment": aws.environment}
    return json.dumps(told)


def in_words(aws: LocalAws) -> list[str]:
    """What a person does next."""
    return [
        f"It is up at {aws.endpoint}. In another terminal, set:\n",
        *(f"  {line}" for line in exports(aws.environment)),
        f"\nSave to s3://{aws.bucket}/<run>, and the rules look; then ask there:\n",
        "  smdebug runs",
        "  smdebug status <run> --watch",
        "  smdebug findings <run>",
        "\nCtrl-C ends it, and removes all of it.",
    ]


def exports(environment: Mapping[str, str]) -> list[str]:
    """The environment as lines for a shell."""
    return [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]


def _say(line: str) -> None:
    print(line, flush=True)  # whoever reads this from a pipe waits for it
