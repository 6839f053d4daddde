"""`smdebug completion`: the completion script for a shell."""

from __future__ import annotations

import click

from smdebug.cli.answers.output import output_options, print_json


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@output_options
def command(shell: str, as_json: bool) -> None:
    """Print the script that makes SHELL complete commands, options, paths, rules and tensors.

    \b
    Examples:
      eval "$(smdebug completion bash)"                 # in ~/.bashrc
      eval "$(smdebug completion zsh)"                  # in ~/.zshrc
      smdebug completion fish > ~/.config/fish/completions/smdebug.fish

    Exits with 0, and with 2 for another shell.
    """
    from click.shell_completion import get_completion_class

    from smdebug.cli.commands import smdebug
    from smdebug.cli.this_machine.shells import register_shells

    register_shells()
    kind = get_completion_class(shell)
    assert kind is not None
    # `source` would run bash to ask its version, and bash may not be installed.
    completer = kind(smdebug, {}, "smdebug", "_SMDEBUG_COMPLETE")
    text = completer.source_template % completer.source_vars()
    if as_json:
        print_json({"shell": shell, "script": text})
    else:
        click.echo(text)
