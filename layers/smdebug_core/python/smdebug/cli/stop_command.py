"""`smdebug stop`: ask a training to stop."""

from __future__ import annotations

import sys

import click

from smdebug.cli.output import output_options, print_json, print_line
from smdebug.cli.service_options import stack_option, watched_run


@click.command("stop")
@click.argument("run")
@click.option(
    "--reason", default="no reason was given", show_default=True, help="Give this reason."
)
@click.option(
    "--at-step", type=click.IntRange(0), metavar="N", help="Do not stop before that step."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@stack_option
@output_options
def command(
    run: str, reason: str, at_step: int | None, yes: bool, stack: str | None, as_json: bool
) -> None:
    """Ask the training of RUN to stop; it stops at its next saved step.

    \b
    Examples:
      smdebug stop resnet-50
      smdebug stop resnet-50 --reason "the loss is NaN" --at-step 500 --yes

    Exits with 0 if the stop was requested, and with 3 if the run or the debugger cannot be reached.
    """
    chosen = watched_run(stack, run)
    if not yes and sys.stdin is not None and sys.stdin.isatty():
        click.confirm(f"Stop the training of {chosen.location}?", abort=True, err=True)
    request = chosen.stop(reason, stop_at_step=at_step)
    if as_json:
        print_json({"run": chosen.location, **request})
        return
    when = "at its next saved step" if at_step is None else f"at step {at_step}"
    print_line(f"stop requested: {chosen.location} stops {when}")
