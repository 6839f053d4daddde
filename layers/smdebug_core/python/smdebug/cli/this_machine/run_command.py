"""`smdebug run`: run an unchanged training script with a hook."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from smdebug.cli.arguments.completers import complete_place


def run_script(arguments: Sequence[str]) -> int:
    """Run the script in this process, directly on the terminal; return its exit code."""
    code = import_module("smdebug.launching.scripts").main(list(arguments))
    return code if isinstance(code, int) else 0


class _Script(click.Command):
    """Completes the options of `smdebug.run`, which come before the script."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        options = import_module("smdebug.launching.scripts").options()
        return [CompletionItem(option) for option in options if option.startswith(incomplete)]


@click.command(
    "run",
    cls=_Script,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_place)
def command(arguments: tuple[str, ...]) -> int:
    """Run an unchanged training script with a hook."""
    return run_script(arguments)
