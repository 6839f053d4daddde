"""`smdebug doctor`: what is installed, what is missing, what can be reached."""

from __future__ import annotations

import click

from smdebug.cli import exit_codes
from smdebug.cli.output import (
    Styled,
    bad,
    faint,
    good,
    output_options,
    print_json,
    print_line,
    print_table,
)


@click.command("doctor")
@click.option("--stack", metavar="NAME", help="Look also whether that stack can be asked.")
@click.option("--offline", is_flag=True, help="Do not try to reach AWS.")
@output_options
def command(stack: str | None, offline: bool, as_json: bool) -> int:
    """Tell what is installed and what is missing, and whether the AWS account can be reached.

    \b
    Examples:
      smdebug doctor
      smdebug doctor --offline
      smdebug doctor --stack research --json

    Ends with 0 if nothing is wrong, and with 1 if something is. What is merely not there is not wrong.
    """
    from smdebug.cli.environment_checks import run_checks

    checks = run_checks(stack=stack, offline=offline)
    if as_json:
        print_json([one._asdict() for one in checks])
    else:
        marks = {
            "well": Styled(good("✓")),
            "absent": Styled(faint("–")),
            "wrong": Styled(bad("✗")),
        }
        print_table(
            ("", "what", "found"), [(marks[one.state], one.what, one.found) for one in checks]
        )
        for one in checks:
            if one.hint:
                print_line(f"\n{one.what}: {one.hint}")
    wrong = any(one.state == "wrong" for one in checks)
    return exit_codes.FOUND if wrong else exit_codes.PASSED
