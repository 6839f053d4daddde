"""`smdebug detach`: have a rule watch a run no longer."""

from __future__ import annotations

import click

from smdebug.cli.output import output_options, print_json, print_line
from smdebug.cli.service_options import stack_option, watched_run


@click.command("detach")
@click.argument("run")
@click.argument("rules", nargs=-1, required=True)
@stack_option
@output_options
def command(run: str, rules: tuple[str, ...], stack: str | None, as_json: bool) -> None:
    """Have the RULES, by their names, watch RUN no longer. What they have found stays.

    \b
    Examples:
      smdebug detach resnet-50 vanishing
      smdebug detach resnet-50 vanishing loss
    """
    chosen = watched_run(stack, run)
    now = chosen.detach(rules)
    if as_json:
        print_json([one.to_dict() for one in now])
        return
    print_line(f"{chosen.location} is watched by {', '.join(one.name for one in now) or 'no rule'}")
