"""`smdebug runs`: list the runs of a deployed debugger."""

from __future__ import annotations

import click

from smdebug.cli.colours import bad
from smdebug.cli.output import moment, output_options, print_json, print_line, print_table
from smdebug.cli.service_options import debugger_at, stack_option
from smdebug.service.tables import cell


@click.command("runs")
@click.option("--watched", is_flag=True, help="Only runs that have not finished.")
@stack_option
@output_options
def command(watched: bool, stack: str | None, as_json: bool) -> None:
    """List the runs that the deployed debugger has seen, newest first.

    \b
    Examples:
      smdebug runs
      smdebug runs --watched --json
    """
    runs = debugger_at(stack).runs(watched=watched)
    if as_json:
        print_json(runs.to_dict())
        return
    if not runs:
        print_line("No runs yet.")
        return
    print_table(
        (
            "run",
            "state",
            "verdict",
            "since",
            "workers",
            "evaluated through",
            "rules",
            "open issues",
        ),
        [
            (
                *(run.run, run.state, run.verdict, moment(run.first_seen)),
                *(run.workers, run.evaluated_through),
                *(cell(run.rules), run.open_issues or None),
            )
            for run in runs
        ],
    )
    for run in runs:
        if run.trouble:
            print_line(bad(f"{run.run}: ") + run.trouble)
