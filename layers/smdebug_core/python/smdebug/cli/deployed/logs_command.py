"""`smdebug logs`: show what a rule logged on a run."""

from __future__ import annotations

import re

import click

from smdebug.cli.answers.colours import bad, faint
from smdebug.cli.answers.output import moment, output_options, print_json, print_line
from smdebug.cli.arguments.service_options import stack_option, watched_run
from smdebug.service.tables import cell

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _span(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Parse a time span into seconds: `90`, `30s`, `15m`, `2h`, `7d`."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", value.strip().lower())
    if found is None:
        raise click.BadParameter(f"{value!r} is not a time span: write 30s, 15m, 2h or 7d.", ctx, parameter)
    return float(found[1]) * _UNITS[found[2] or "s"]


@click.command("logs")
@click.argument("run")
@click.argument("rule")
@click.option(
    "--since",
    callback=_span,
    metavar="SPAN",
    help="Show the last 30s, 15m, 2h or 7d (default: all).",
)
@stack_option
@output_options
def command(run: str, rule: str, since: float | None, stack: str | None, as_json: bool) -> None:
    """Show what RULE logged on RUN.

    \b
    Examples:
      smdebug logs resnet-50 vanishing
      smdebug logs resnet-50 vanishing --since 15m

    Exits with 0, with 2 if the run has no such rule, and with 3 if the logs cannot be read.
    """
    lines = watched_run(stack, run).logs(rule, since=since)
    if as_json:
        print_json(lines.to_dict())
        return
    if not lines:
        print_line(f"No log lines of {rule}.")
    for line in lines:
        is_error = line.level in ("ERROR", "CRITICAL")
        level = bad(f"{line.level:<8}") if is_error else faint(f"{line.level:<8}")
        step = "" if line.step is None else f"step {line.step}  "
        print_line(f"{faint(moment(line.time))}  {level}  {step}{cell(line.message)}")
