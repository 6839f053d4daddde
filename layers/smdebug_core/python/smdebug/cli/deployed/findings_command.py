"""`smdebug findings`: list the findings of a watched run."""

from __future__ import annotations

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.diagnosis_output import print_issues
from smdebug.cli.answers.output import output_options, print_json, print_line, print_table
from smdebug.cli.arguments.service_options import stack_option, watched_run


@click.command("findings")
@click.argument("run")
@click.option("--rule", metavar="NAME", help="Show one rule only: its name, id or class.")
@click.option("--since", type=click.IntRange(0), metavar="STEP", help="Show findings from that step on.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Show the last N.")
@stack_option
@output_options
def command(
    run: str,
    rule: str | None,
    since: int | None,
    last: int | None,
    stack: str | None,
    as_json: bool,
) -> int:
    """Show the problems of RUN with their causes, and list the findings of its rules by step.

    \b
    Examples:
      smdebug findings resnet-50
      smdebug findings resnet-50 --rule vanishing --last 5
      smdebug findings resnet-50 --json | jq '.[].evidence.worst[0]'

    Exits with 0 if nothing was found, with 1 if something was, and with 3 if the run cannot be reached.
    """
    from smdebug.service.findings import issues_in

    found = watched_run(stack, run).findings(rule, since_step=since, limit=last)
    if as_json:
        print_json(found.to_dict())
    elif not found:
        print_line("No findings.")
    else:
        print_issues(issues_in(found))
        print_table(
            ("step", "mode", "rule", "found", "worst", "statistic", "value"),
            [
                (
                    finding.step,
                    finding.mode,
                    finding.name,
                    finding.count,
                    finding.tensor,
                    finding.statistic,
                    finding.value,
                )
                for finding in found
            ],
        )
    return exit_codes.FOUND if found else exit_codes.PASSED
