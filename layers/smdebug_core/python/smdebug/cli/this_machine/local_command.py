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
@output_options
def command(port: int, as_json: bool) -> int:
    """Run a local stack for a training in another terminal, and print the variables to set there.

    The real handlers evaluate the rules; moto simulates AWS. Ctrl-C ends the stack and removes everything.

    \b
    Examples:
      smdebug local
      smdebug local --port 4566
      smdebug local --json > stack.json

    Exits with 0 when Ctrl-C ends it, and with 2 if a package is missing.
    """
    return run_from_checkout("local_aws.serve", "serve", port=port, as_json=as_json)
