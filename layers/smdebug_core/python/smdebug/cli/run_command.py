"""`smdebug run`: a training script, unchanged, with a hook in it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run a training script, unchanged, with a hook in it."""
    if find_spec("smdebug.run") is None:
        raise click.UsageError(
            "This version cannot put a hook into a script: "
            "add smdebug.Hook to it, or the hook of your framework"
        )
    code = import_module("smdebug.run").main(list(arguments))
    return code if isinstance(code, int) else 0
