"""`smdebug local`: the whole application on this machine, for your own training."""

from __future__ import annotations

import click

from smdebug.cli.checkout import run_from_checkout


@click.command(
    "local",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Keep a local stack up, for a training in another terminal; prints what to set there."""
    return run_from_checkout("infra.local.serve", arguments)
