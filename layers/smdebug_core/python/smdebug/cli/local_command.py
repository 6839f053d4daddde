"""`smdebug local`: the whole application on this machine, for your own training."""

from __future__ import annotations

import click

from smdebug.cli.checkout import run_from_checkout
from smdebug.cli.output import output_options


@click.command("local")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of its AWS (any free one).")
@output_options
def command(port: int, as_json: bool) -> int:
    """Keep a local stack up for a training in another terminal, and print what to set there.

    The real handlers evaluate the rules; AWS itself is played by moto. Ctrl-C ends it, and removes all of it.

    \b
    Examples:
      smdebug local
      smdebug local --port 4566
      smdebug local --json > stack.json
    """
    return run_from_checkout("local_aws.serve", "serve", port=port, as_json=as_json)
