"""`smdebug run`: run an unchanged training script with a hook."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from smdebug.cli.arguments.completers import complete_place


def run_script(arguments: Sequence[str]) -> int:
    """Run the script in this process, directly on the terminal; return its exit code.

    With --json-schema in place of a script, print the schema of what --json writes.
    """
    if list(arguments) == ["--json-schema"]:
        from smdebug.cli.answers.output import print_json
        from smdebug.cli.json_answers.schemas import schema_of

        print_json(schema_of("run"))
        return 0
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
