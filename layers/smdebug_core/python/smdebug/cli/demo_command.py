"""`smdebug demo`: the whole thing at work, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from smdebug.cli.checkout import run_from_checkout
from smdebug.cli.completers import complete_folder
from smdebug.cli.output import output_options


@click.command("demo")
@click.option(
    "--keep",
    shell_complete=complete_folder,
    metavar="FOLDER",
    help="Leave the two runs there, to look at them afterwards.",
)
@output_options
def command(keep: str | None, as_json: bool) -> int:
    """Train something ill and its healthy twin on a local stack, and watch the rules find out why.

    It takes a minute, needs no account and no Docker, and cleans up behind itself. In JSON, all that was seen
    comes in one document at the end; the story is then for a terminal alone, on stderr.

    \b
    Examples:
      smdebug demo
      smdebug demo --keep ./runs
      smdebug demo --json > seen.json
    """
    arguments = ["--keep", str(Path(keep).expanduser().resolve())] if keep else []
    arguments += ["--json"] if as_json else []
    return run_from_checkout("local_aws.demo.main", "main", arguments)
