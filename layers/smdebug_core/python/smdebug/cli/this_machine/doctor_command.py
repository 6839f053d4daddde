"""`smdebug doctor`: check the installation and the AWS account."""

from __future__ import annotations

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good
from smdebug.cli.answers.output import Styled, output_options, print_json, print_line, print_table
from smdebug.cli.arguments.completers import complete_place


@click.command("doctor")
@click.option("--stack", metavar="NAME", help="Check this stack (default: smdebug).")
@click.option("--deployed", is_flag=True, help="Check the live stack instead of this machine.")
@click.option(
    "--config",
    metavar="FILE",
    shell_complete=complete_place,
    help="Check this configuration of a hook (default: the file in SMDEBUG_CONFIG_FILE_PATH).",
)
@click.option("--offline", is_flag=True, help="Do not contact AWS.")
@output_options
def command(stack: str | None, deployed: bool, config: str | None, offline: bool, as_json: bool) -> int:
    """Show what is installed and what is missing, and whether the AWS account can be reached.

    With --deployed it reads from AWS whether the stack's bucket notifies, its queue is read, no message is a
    dead letter, the sweeper runs, no alarm is raised, and webhooks can read their secrets. Nothing is
    changed.

    \b
    Examples:
      smdebug doctor
      smdebug doctor --offline
      smdebug doctor --config debughookconfig.json
      smdebug doctor --deployed
      smdebug doctor --stack research --json

    Exits with 0 if nothing is wrong, and with 1 if something is. Missing optional packages are not wrong.
    """
    from smdebug.cli.this_machine.environment_checks import run_checks, run_live_checks

    if deployed and offline:
        raise click.UsageError("--deployed contacts AWS: omit --offline.")
    if deployed:
        checks = run_live_checks(stack)
    else:
        checks = run_checks(stack=stack, config=config, offline=offline)
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        marks = {
            "well": Styled(good("✓")),
            "absent": Styled(faint("–")),
            "wrong": Styled(bad("✗")),
        }
        print_table(
            ("", "what", "found"),
            [(marks[check.state], check.what, check.found) for check in checks],
        )
        for check in checks:
            if check.hint:
                print_line()
                print_line(f"{check.what}: {check.hint}")
    wrong = any(check.state == "wrong" for check in checks)
    return exit_codes.FOUND if wrong else exit_codes.PASSED
