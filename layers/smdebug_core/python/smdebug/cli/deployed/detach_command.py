"""`smdebug detach`: remove rules from a run."""

from __future__ import annotations

import click

from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.arguments.service_options import stack_option, watched_run


@click.command("detach")
@click.argument("run")
@click.argument("rules", nargs=-1, required=True)
@stack_option
@output_options
def command(run: str, rules: tuple[str, ...], stack: str | None, as_json: bool) -> None:
    """Remove the named RULES from RUN. Their findings are kept.

    \b
    Examples:
      smdebug detach resnet-50 vanishing
      smdebug detach resnet-50 vanishing loss

    Exits with 0 if the rules were removed, and with 3 if the run or the debugger cannot be reached.
    """
    chosen = watched_run(stack, run)
    now = chosen.detach(rules)
    if as_json:
        print_json([rule.to_dict() for rule in now])
        return
    print_line(f"{chosen.location} is watched by {', '.join(rule.name for rule in now) or 'no rule'}")
