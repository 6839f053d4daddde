"""`smdebug completion`: completion of commands and rules for the shell."""

from __future__ import annotations

import click

from smdebug.cli.output import output_options, print_json


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@output_options
def command(shell: str, as_json: bool) -> None:
    """Print what makes SHELL complete commands, options and the names of rules.

    \b
    Examples:
      eval "$(smdebug completion bash)"                 # in ~/.bashrc
      eval "$(smdebug completion zsh)"                  # in ~/.zshrc
      smdebug completion fish > ~/.config/fish/completions/smdebug.fish
    """
    from click.shell_completion import get_completion_class

    from smdebug.cli.commands import smdebug
    from smdebug.cli.shells import use_ours

    use_ours()
    kind = get_completion_class(shell)
    assert kind is not None
    # `source` would ask bash for its version, which need not be on this machine.
    made = kind(smdebug, {}, "smdebug", "_SMDEBUG_COMPLETE")
    text = made.source_template % made.source_vars()
    if as_json:
        print_json({"shell": shell, "script": text})
    else:
        click.echo(text)
