"""`smdebug local`: keeps the local stack up, for runs and commands in other terminals."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from local_aws.aws import LocalAws
from local_aws.errors import INTERRUPTED, LocalStackError, report_error

STOPS, EXPORTS = "StopQueues", "ExportQueues"


def serve(
    *,
    port: int = 0,
    settings: Mapping[str, Any] | None = None,
    as_json: bool = False,
    write: Callable[[str], None] | None = None,
    until: threading.Event | None = None,
) -> int:
    """Start the stack, print what to set in other terminals, and wait for Ctrl-C (or for `until`).

    As JSON it prints one line when the stack is up, and nothing else.
    """
    write = write or _print
    stop = until or threading.Event()
    starting, ending = True, False

    def end(*_: object) -> None:
        nonlocal ending
        if not ending:  # a second signal finds it ending already
            ending = True
            raise KeyboardInterrupt  # no lock is taken here: the code below, or a first signal, may hold it

    aws = LocalAws(settings, port=port)
    try:
        if until is None:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, end)
        if not as_json:
            write("Starting the debugger on this machine ...")
        aws.start()
        *lines, last = [as_data(aws)] if as_json else instructions(aws)
        for line in lines:
            write(line)
        starting = False  # whoever reads the last line may end the stack at once
        write(last)
        stop.wait()
    except KeyboardInterrupt:
        if starting:
            print("Interrupted. Nothing was left behind.", file=sys.stderr)
            return INTERRUPTED
    except LocalStackError as error:
        return report_error(error, as_json=as_json)
    finally:
        aws.stop()
    if not as_json:
        write("\nStopped. Nothing was left behind.")
    return 0


def as_data(aws: LocalAws) -> str:
    """The stack's address for a program, in one line of JSON."""
    address = {"endpoint": aws.endpoint, "bucket": aws.bucket, "environment": aws.environment}
    return json.dumps({**address, "stop_queues": queues(aws, STOPS), "export_queues": queues(aws, EXPORTS)})


def instructions(aws: LocalAws) -> list[str]:
    """What to do next, for a person."""
    return [
        f"The stack is up at {aws.endpoint}. In another terminal, set:\n",
        *(f"  {line}" for line in exports(aws.environment)),
        f"\nSave to s3://{aws.bucket}/<run>: the rules evaluate each saved step. Then run there:\n",
        "  smdebug runs",
        "  smdebug status <run> --watch",
        "  smdebug findings <run>",
        *(
            f"\nThe queue {name} is {url}"
            for kind in (STOPS, EXPORTS)
            for name, url in queues(aws, kind).items()
        ),
        "\nCtrl-C ends the stack and removes everything.",
    ]


def queues(aws: LocalAws, output: str) -> dict[str, str]:
    """The addresses of the queues of an output, by their names."""
    listed = aws.outputs.get(output, "")
    return dict(named.split("=", 1) for named in listed.split(",") if named)


def exports(environment: Mapping[str, str]) -> list[str]:
    """The environment as lines for a shell."""
    return [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]


def _print(line: str) -> None:
    print(line, flush=True)  # a program may be waiting for it in a pipe
