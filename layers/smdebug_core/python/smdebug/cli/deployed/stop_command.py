"""`smdebug stop`: ask a training to stop."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.arguments.completers import complete_folder
from smdebug.cli.arguments.service_options import stack_option, watched_run
from smdebug.exceptions import MissingCollectionFiles
from smdebug.plain_text import escaped


@click.command("stop")
@click.argument("run", shell_complete=complete_folder)
@click.option("--reason", default="no reason was given", show_default=True, help="Give this reason.")
@click.option("--at-step", type=click.IntRange(0), metavar="N", help="Do not stop before that step.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@stack_option
@output_options
def command(run: str, reason: str, at_step: int | None, yes: bool, stack: str | None, as_json: bool) -> None:
    """Ask the training of RUN to stop; it stops at its next saved step.

    RUN is a run in progress: a folder or S3 prefix, or else a run of a deployed debugger. The training looks
    for requests at saved steps, at most every 10 seconds.

    \b
    Examples:
      smdebug stop runs/a
      smdebug stop resnet-50
      smdebug stop resnet-50 --reason "the loss is NaN" --at-step 500 --yes

    Exits with 0 if the stop was requested, and with 3 if the run has ended, or the run or the debugger cannot
    be reached.
    """
    from smdebug.runs.requests.stopping import request_stop

    place = _place_of(run) if stack is None else None
    if place is not None:
        _confirm(place, yes)
        location, request = request_stop(place, reason, stop_at_step=at_step)
    else:
        chosen = watched_run(stack, run)
        location = chosen.location
        _confirm(location, yes)
        request = chosen.stop(reason, stop_at_step=at_step)
    if as_json:
        print_json({"run": location, **request})
        return
    when = "at its next saved step" if at_step is None else f"at step {at_step}"
    print_line(f"stop requested: {location} stops {when}")


def _place_of(run: str) -> str | None:
    """Return where the run is if its files are there; None if it is the name of a watched run."""
    from smdebug.runs.opening import open_run

    try:
        return open_run(run).path
    except MissingCollectionFiles:
        if Path(run).expanduser().exists():
            raise
        return None


def _confirm(location: str, yes: bool) -> None:
    if not yes and sys.stdin is not None and sys.stdin.isatty():
        click.confirm(f"Stop the training of {escaped(location)}?", abort=True, err=True)
