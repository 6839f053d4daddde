"""`smdebug run`: a training script, unchanged, with a hook in it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from smdebug.cli.completers import complete_place


def run_script(arguments: Sequence[str]) -> int:
    """Run it in this process, with nothing between it and its terminal; its exit code."""
    code = import_module("smdebug.run").main(list(arguments))
    return code if isinstance(code, int) else 0


class _Script(click.Command):
    """Its options are those of the program behind it, which come before the script."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        options = import_module("smdebug.run").options()
        return [CompletionItem(one) for one in options if one.startswith(incomplete)]


@click.command(
    "run",
    cls=_Script,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_place)
def command(arguments: tuple[str, ...]) -> int:
    """Run a training script, unchanged, with a hook in it."""
    return run_script(arguments)
