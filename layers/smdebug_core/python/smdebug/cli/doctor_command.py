"""`smdebug doctor`: what is installed, what is missing, what can be reached."""

from __future__ import annotations

import click

from smdebug.cli import outcomes
from smdebug.cli.telling import Styled, bad, faint, good, json_option, say, table, tell_json


@click.command("doctor")
@click.option("--stack", metavar="NAME", help="Look also whether that stack can be asked.")
@click.option("--offline", is_flag=True, help="Do not try to reach AWS.")
@json_option
def command(stack: str | None, offline: bool, as_json: bool) -> int:
    """Tell what is installed and what is missing, and whether the AWS account can be reached.

    \b
    Examples:
      smdebug doctor
      smdebug doctor --offline
      smdebug doctor --stack research --json

    Ends with 0 if nothing is wrong, and with 1 if something is. What is merely not there is not wrong.
    """
    from smdebug.cli.examination import examine

    checks = examine(stack=stack, offline=offline)
    if as_json:
        tell_json([one._asdict() for one in checks])
    else:
        marks = {
            "well": Styled(good("✓")),
            "absent": Styled(faint("–")),
            "wrong": Styled(bad("✗")),
        }
        table(("", "what", "found"), [(marks[one.state], one.what, one.found) for one in checks])
        for one in checks:
            if one.hint:
                say(f"\n{one.what}: {one.hint}")
    wrong = any(one.state == "wrong" for one in checks)
    return outcomes.FOUND if wrong else outcomes.WELL
