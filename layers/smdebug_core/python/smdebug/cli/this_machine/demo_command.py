"""`smdebug demo`: the whole debugger at work on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from smdebug.cli.answers.output import output_options
from smdebug.cli.arguments.completers import complete_folder
from smdebug.cli.this_machine.checkout import run_from_checkout


@click.command("demo")
@click.option(
    "--keep",
    shell_complete=complete_folder,
    metavar="FOLDER",
    help="Keep the two runs in FOLDER.",
)
@output_options
def command(keep: str | None, as_json: bool) -> int:
    """Train a failing model and its healthy twin on a local stack, and watch the rules detect why.

    It takes a minute, needs neither an AWS account nor Docker, and cleans up after itself. With --json, it
    prints one document at the end, and the progress on stderr if that is a terminal.

    \b
    Examples:
      smdebug demo
      smdebug demo --keep ./runs
      smdebug demo --json > seen.json

    Exits with 0 if the rules detected what they should, and with 1 if they did not.
    """
    arguments = ["--keep", str(Path(keep).expanduser().resolve())] if keep else []
    arguments += ["--json"] if as_json else []
    return run_from_checkout("local_aws.demo.main", "main", arguments)
