"""`smdebug run`: a training script with a hook in it, unchanged."""

from __future__ import annotations

import os
import sys

import click


@click.command(
    "run",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Run a training script with a hook in it, unchanged."""
    # A process of its own: the script's errors and exit codes are its own, not those of this command.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "smdebug.run", *arguments])  # noqa: S606
