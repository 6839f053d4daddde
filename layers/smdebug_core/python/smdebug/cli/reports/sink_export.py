"""`smdebug export` to another tool: the options, and what is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.output import print_json, print_line, print_note
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import Progress
from smdebug.sinks.sink import KINDS

if TYPE_CHECKING:
    from smdebug.diagnosis.issues import Issue
    from smdebug.export import Selection
    from smdebug.export.sending import Stage
    from smdebug.sinks.sink import RunSink
    from smdebug.trials import Trial

F = TypeVar("F", bound=Callable[..., Any])

STDOUT = "-"
_LABELS = {"numbers": "sending", "rules": "evaluating", "report": "gathering"}


class SinkRequest(NamedTuple):
    """What the command line asks for."""

    form: str
    output: str | None
    to: str | None
    into: str | None
    statistics: tuple[str, ...]
    no_rules: bool


def sink_options(function: F) -> F:
    """Add the options of exports to another tool."""
    for option in (
        click.option("--no-rules", is_flag=True, help="Other tools: send numbers alone, evaluate no rules."),
        click.option(
            "--statistic",
            "statistics",
            multiple=True,
            metavar="NAME",
            help="Other tools: send this statistic of tensors (default: rms); can be repeated.",
        ),
        click.option("--into", metavar="ID", help="mlflow: log to this run of MLflow instead of a new one."),
        click.option(
            "--to",
            metavar="TARGET",
            help="mlflow: the tracking server. wandb, trackio: the project. otlp: the endpoint. By default "
            "as the environment says.",
        ),
    ):
        function = option(function)
    return function


def refuse_what_does_not_fit(request: SinkRequest) -> None:
    """Raise a usage error if the tool has no such options, or no statistic has that name."""
    from smdebug.runs.statistics import STATISTICS

    unknown = [name for name in request.statistics if name not in STATISTICS]
    if unknown:
        raise click.UsageError(
            f"There is no statistic {unknown[0]!r}. The statistics are {', '.join(STATISTICS)}"
        )
    writes_files = bool(KINDS[request.form].ending)
    if writes_files and (request.to or request.into):
        raise click.UsageError(f"{request.form} is written to a file: use -o")
    if request.output and not writes_files:
        raise click.UsageError(f"{request.form} is sent, not written to a file: use --to")
    if request.into and request.form != "mlflow":
        raise click.UsageError("--into names a run of MLflow")


def send(
    trial: Trial,
    request: SinkRequest,
    selection: Selection,
    *,
    as_json: bool,
    found_elsewhere: Sequence[Issue] = (),
    event: str = "",
) -> int:
    """Send the run, for this event if there is one, print how much was sent, and return the exit code."""
    from smdebug.export.sending import send_run

    refuse_what_does_not_fit(request)
    if request.output == STDOUT and as_json:
        raise click.UsageError("--json and -o - both print to the standard output: use one of them")
    sink, output = _sink(trial, request, event)
    bars = _Bars()
    try:
        with redirect_stdout(sys.stderr):  # what a rule or a tool prints is no part of the answer
            sent = send_run(
                trial,
                sink,
                selection,
                statistics=request.statistics,
                with_rules=not request.no_rules,
                found_elsewhere=found_elsewhere,
                progress=bars.of,
            )
    finally:
        bars.clear()
    place = output or sink.place
    for note in sink.notes:
        print_note(note)
    gaps = warn_of_unread_files(trial)
    code = code_despite(gaps, exit_codes.PASSED)
    if as_json:
        print_json(
            {
                "form": request.form,
                "output": place,
                "run_id": getattr(sink, "run_id", None),
                "values": sent.numbers,
                "problems": sent.problems,
                "notes": sink.notes,
                "left_out": gaps,
            }
        )
    elif request.output != STDOUT:
        problems = "" if request.no_rules else f" and {counted(sent.problems, 'problem')}"
        print_line(f"{counted(sent.numbers, 'value')}{problems} sent to {place}")
    return code


def _sink(trial: Trial, request: SinkRequest, event: str) -> tuple[RunSink, str | None]:
    """Return the sink, and the file it writes if it writes one."""
    from smdebug.export.sending import file_sink, tool_sink

    if ending := KINDS[request.form].ending:
        output = request.output or f"{trial.name}.{ending}"
        return file_sink(request.form, output, sys.stdout), output
    return tool_sink(request.form, request.to or "", request.into, event=event), None


class _Bars:
    """A progress bar for each stage, the last one shown."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def of(self, stage: Stage, total: int | None) -> Callable[[int], object]:
        self.clear()
        self._bar = Progress(_LABELS[stage], total)
        return self._bar.advance

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.clear()
            self._bar = None
