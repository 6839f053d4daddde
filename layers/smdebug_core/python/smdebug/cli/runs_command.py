"""`smdebug runs`: the runs that a deployed debugger watches."""

from __future__ import annotations

import click

from smdebug.cli.output import bad, moment, output_options, print_json, print_line, print_table
from smdebug.cli.service_options import debugger_at, stack_option
from smdebug.service.tables import cell


@click.command("runs")
@click.option("--watched", is_flag=True, help="Those alone that have not finished.")
@stack_option
@output_options
def command(watched: bool, stack: str | None, as_json: bool) -> None:
    """List the runs that the deployed debugger has seen, the newest first.

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
        print_line("No run was seen yet.")
        return
    print_table(
        ("run", "state", "since", "workers", "evaluated through", "rules", "open issues"),
        [
            (
                *(one.run, one.state, moment(one.first_seen), one.workers, one.evaluated_through),
                *(cell(one.rules), one.open_issues or None),
            )
            for one in runs
        ],
    )
    for one in runs:
        if one.trouble:
            print_line(bad(f"{one.run}: ") + one.trouble)
