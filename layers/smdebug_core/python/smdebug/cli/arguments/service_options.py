"""Shared by the commands that query a deployed debugger."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from smdebug.service.client import Debugger, WatchedRun

F = TypeVar("F", bound=Callable[..., Any])


def stack_option(function: F) -> F:
    """Add `--stack`, the debugger to query."""
    return click.option(
        "--stack",
        metavar="NAME",
        help="Query this stack (default: SMDEBUG_STACK, a local one by SMDEBUG_TABLE, or smdebug). "
        "Credentials and region are those of the AWS tools.",
    )(function)


def debugger_at(stack: str | None) -> Debugger:
    """Return the deployed debugger, on AWS or local."""
    from smdebug.service.client import connect

    return connect(stack)


def watched_run(stack: str | None, run: str) -> WatchedRun:
    """Return a run, by its location or the name of its SageMaker job."""
    return debugger_at(stack).run(run)
