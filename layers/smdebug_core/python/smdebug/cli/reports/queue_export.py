"""`smdebug export TOOL --queue`: send each run that the deployed debugger says has finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.output import print_note
from smdebug.cli.arguments.inputs import open_path
from smdebug.cli.reports.sink_export import STDOUT, SinkRequest, refuse_what_does_not_fit, send
from smdebug.exceptions import (
    AlreadySent,
    MissingCollectionFiles,
    SMDebugCustomerError,
    SMDebugError,
    UnreadableMessage,
)
from smdebug.sinks.sink import KINDS, SinkChoice

if TYPE_CHECKING:
    from smdebug.export import Selection

F = TypeVar("F", bound=Callable[..., Any])


def queue_options(function: F) -> F:
    """Add the options of exports from a queue."""
    for option in (
        click.option("--once", is_flag=True, help="With --queue: end when the queue is empty."),
        click.option(
            "--queue",
            metavar="URL",
            help="Other tools: instead of one run, send each run that the deployed debugger says has "
            "finished. The address is in its output ExportQueues.",
        ),
    ):
        function = option(function)
    return function


def refuse_what_names_one_run(
    path: str | None, request: SinkRequest, selection: Selection, attempt: int | None, *, as_json: bool
) -> None:
    """Raise a usage error if the command line says something that is of a single run."""
    if request.form not in KINDS:
        raise click.UsageError(f"--queue is for {', '.join(KINDS)}")
    named = {"a run": path, "--into": request.into, "--step": selection.steps, "--attempt": attempt}
    for what, value in {**named, "--json": as_json or None}.items():
        if value is not None:
            raise click.UsageError(f"--queue sends many runs, {what} is for one: use either")


def send_finished_runs(queue: str, request: SinkRequest, selection: Selection, *, once: bool) -> int:
    """Send the finished runs that the queue names; return the exit code."""
    from smdebug.service.queues.messages import handle_messages

    refuse_what_does_not_fit(request)
    if missing := SinkChoice(request.form).missing_library:
        raise SMDebugCustomerError(missing)
    if request.output not in (None, STDOUT) and not Path(request.output).is_dir():
        raise click.UsageError(
            f"There is no folder {request.output}. Create it first: mkdir -p {request.output}"
        )
    exporter = _Exporter(request, selection)
    handle_messages(queue, exporter.send, exporter.say_failed, until_empty=once, at_once=1)
    return exit_codes.FAILED if exporter.has_failed else exit_codes.PASSED


class _Exporter:
    """Sends the run that a message names."""

    def __init__(self, request: SinkRequest, selection: Selection):
        self._request = request
        self._selection = selection
        self.has_failed = False

    def send(self, message: str) -> None:
        from smdebug.service.queues.finished_runs import finished_run

        finished = finished_run(message)
        if finished is None:
            return
        location = finished.location
        try:
            trial = open_path(location)
        except MissingCollectionFiles as gone:
            print_note(f"left out: {gone}")
            return
        if not trial.steps():
            print_note(f"left out: {location} has no step")
            return
        print_note(f"sending {location}")
        request = self._request._replace(output=self._file(location))
        try:
            send(
                trial,
                request,
                self._selection,
                as_json=False,
                found_elsewhere=finished.issues,
                event=finished.event,
            )
        except AlreadySent as known:
            print_note(f"not sent again: {known}")

    def say_failed(self, error: SMDebugError) -> None:
        """Say that a run was not sent, and remember it."""
        self.has_failed = True
        if isinstance(error, UnreadableMessage):
            choice = SinkChoice(self._request.form, self._request.to or "")
            by_hand = f". To send the run now: {choice.export_command(error.run)}" if error.run else ""
            print_note(f"not sent: {error}{by_hand}")
        else:
            print_note(f"not sent: {error}\nIt stays in the queue and is tried again in an hour")

    def _file(self, location: str) -> str | None:
        """Return the file of a run, named after its whole address: runs of two folders may share a name."""
        if not KINDS[self._request.form].ending or self._request.output == STDOUT:
            return self._request.output
        from smdebug.export.sending import file_name

        return str(Path(self._request.output or ".") / file_name(self._request.form, location))
