"""`smdebug demo`: the whole thing at work, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from smdebug.cli.checkout import run_from_checkout


@click.command("demo")
@click.option(
    "--keep", metavar="FOLDER", help="Leave the two runs there, to look at them afterwards."
)
def command(keep: str | None) -> int:
    """Train something ill and its healthy twin on a local stack, and watch the rules find out why.

    It takes a minute, needs no account and no Docker, and cleans up behind itself.

    \b
    Examples:
      smdebug demo
      smdebug demo --keep ./runs
    """
    arguments = ["--keep", str(Path(keep).expanduser().resolve())] if keep else []
    return run_from_checkout("infra.local.demo", "main", arguments)
