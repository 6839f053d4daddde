"""`smdebug demo`: the whole thing at work, on this machine."""

from __future__ import annotations

import click

from smdebug.cli.checkout import run_from_checkout


@click.command(
    "demo",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Train something ill and its healthy twin on a local stack, and watch the rules find out why."""
    return run_from_checkout("infra.local.demo", arguments)
