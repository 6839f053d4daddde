"""Waits that end only if something is wrong, and functions that are killed until something has happened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from local_aws import LocalDebugger

TIMEOUT = 300.0  # seconds, for every wait: a busy machine must not change the result


class PatientDebugger(LocalDebugger):
    """A debugger whose waits end only if something is wrong, however busy the machine is."""

    def wait(self, name, *, through, seconds=TIMEOUT):
        return super().wait(name, through=through, seconds=seconds)

    def finish(self, name, *, seconds=TIMEOUT):
        return super().finish(name, seconds=seconds)

    def end(self, name, *, seconds=TIMEOUT):
        return super().end(name, seconds=seconds)

    def run(self, name, *, seconds=TIMEOUT):
        return super().run(name, seconds=seconds)


def wait_until(aws, holds, what: str):
    return aws.wait_until(holds, what=what, seconds=TIMEOUT)


def wait_for_use(aws, role: str, action: str, resource: str = "") -> None:
    what = f"{role} to need {action} on {resource or 'everything that it may'}"
    wait_until(aws, lambda: is_used(aws, role, action, resource), what)


def is_used(aws, role: str, action: str, resource: str = "") -> bool:
    """Whether the role has used the action on every resource that contains `resource` in its name."""
    report = aws.permissions()
    return not [
        arn
        for owner, unused, arn in report["unused"]
        if (short(report["roles"].get(owner, owner)), unused) == (role, action) and resource in arn
    ]


def short(name: str) -> str:
    """DebuggerIngestRole88014964 -> Ingest."""
    for owner in ("UndeliveredQueue", "ArrivalsQueue", "AlarmsTopic"):
        if owner in name:
            return owner
    return re.sub(r"^Debugger|Role[0-9A-F]{8}$", "", name)


@contextmanager
def killing(aws, function: str, call: str) -> Iterator[None]:
    """Kill the function at that call."""
    aws.kill_when(function, call, times=1000)
    try:
        yield
    finally:
        aws.kill_when(function, call, times=0)


@contextmanager
def failing_for_good(aws, role: str, call: str, sender: str = "") -> Iterator[None]:
    """Kill a function at that call until its message is a dead letter, or `sender` has sent a reminder."""
    function = re.sub("([a-z])([A-Z])", r"\1_\2", role).lower()
    with killing(aws, function, call):
        yield
        wait_for_use(aws, sender or role, "sqs:SendMessage", "" if sender else "Undelivered")
