"""`smdebug local`: run the application on this machine, for your own training."""

from __future__ import annotations

import click

from smdebug.cli.answers.output import output_options
from smdebug.cli.this_machine.checkout import run_from_checkout


@click.command("local")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Use this port for the local AWS (default: any free port).",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Deploy with this setting, one of those of `cdk deploy -c`; can be repeated.",
)
@output_options
def command(port: int, settings: tuple[str, ...], as_json: bool) -> int:
    """Run a local stack for a training in another terminal, and print the variables to set there.

    The real handlers evaluate the rules; moto simulates AWS. Ctrl-C ends the stack and removes everything.

    \b
    Examples:
      smdebug local
      smdebug local --port 4566
      smdebug local --set backtests_at_once=2 --set account_concurrency=40
      smdebug local --json > stack.json

    Exits with 0 when Ctrl-C ends it, with 2 if a package is missing, and with 3 if it cannot be deployed.
    """
    given = dict(map(_setting, settings))
    return run_from_checkout("local_aws.serve", "serve", port=port, settings=given, as_json=as_json)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--set takes NAME=VALUE, not {text!r}")
    return name, value
