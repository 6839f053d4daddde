"""What the commands that ask a deployed debugger have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from smdebug.service.client import Debugger, WatchedRun

F = TypeVar("F", bound=Callable[..., Any])


def stack_option(function: F) -> F:
    """`--stack`: which debugger is asked."""
    return click.option(
        "--stack",
        metavar="NAME",
        help="The stack to ask (SMDEBUG_STACK, or a local one by SMDEBUG_TABLE; else smdebug). "
        "Credentials and region are those that AWS's own tools would use.",
    )(function)


def debugger_at(stack: str | None) -> Debugger:
    """The deployed debugger, on AWS or local."""
    from smdebug.service.client import connect

    return connect(stack)


def watched_run(stack: str | None, run: str) -> WatchedRun:
    """A run, by its place or the name of its SageMaker job."""
    return debugger_at(stack).run(run)
