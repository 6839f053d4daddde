"""`smdebug runs`: the runs that a deployed debugger watches."""

from __future__ import annotations

import click

from smdebug.cli.service_options import debugger_at, stack_option
from smdebug.cli.telling import bad, json_option, moment, say, table, tell_json
from smdebug.service.tables import cell


@click.command("runs")
@click.option("--watched", is_flag=True, help="Those alone that have not finished.")
@stack_option
@json_option
def command(watched: bool, stack: str | None, as_json: bool) -> None:
    """List the runs that the deployed debugger has seen, the newest first.

    \b
    Examples:
      smdebug runs
      smdebug runs --watched --json
    """
    runs = debugger_at(stack).runs(watched=watched)
    if as_json:
        tell_json(runs.to_dict())
        return
    if not runs:
        say("No run was seen yet.")
        return
    table(
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
            say(bad(f"{one.run}: ") + one.trouble)
