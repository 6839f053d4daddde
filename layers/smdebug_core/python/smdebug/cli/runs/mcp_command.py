"""`smdebug mcp`: let an agent ask about runs."""

from __future__ import annotations

import sys

import click

from smdebug.cli.answers.output import output_options, print_json_line, print_line
from smdebug.cli.arguments.choice_options import rule_file_option
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import read_file
from smdebug.extras import install_command


@click.command("mcp")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_place)
@click.option("--allow-stop", is_flag=True, help="Let the agent ask a training to stop.")
@rule_file_option()
@click.option("--http", is_flag=True, help="Listen on this machine, in place of stdin and stdout.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="With --http: listen on this port (default: a free one).",
)
@output_options
def command(
    paths: tuple[str, ...],
    allow_stop: bool,
    rule_file: str | None,
    http: bool,
    port: int | None,
    as_json: bool,
) -> None:
    """Let an agent ask about the runs at and below each PATH, over the Model Context Protocol.

    PATH is a folder or an S3 prefix, of a run or of many; without one, the current folder. The agent starts
    the command and talks to it over stdin and stdout. With --http it listens on 127.0.0.1 alone, and prints
    its address and the token that every request needs. The agent reads no other runs, attaches rules, and
    stops nothing without --allow-stop.

    \b
    Examples:
      smdebug mcp ./runs
      smdebug mcp s3://bucket/experiments --allow-stop
      smdebug mcp ./runs --http --port 8766

    Exits with 0 when the agent closes stdin or Ctrl-C ends it, and with 3 if the port cannot be used.
    """
    if port is not None and not http:
        raise click.UsageError("--port requires --http")
    try:
        from smdebug.ui.agents.server import HttpServer, serve_stdio
    except ImportError:
        raise click.ClickException(
            f"smdebug mcp needs the package mcp 2 or newer: {install_command('mcp')}"
        ) from None
    from smdebug.ui.agents.tools import Tools

    if rule_file is not None:
        read_file(rule_file)
    tools = Tools(paths or ["."], rule_file=rule_file, allow_stop=allow_stop)
    try:
        if not http:
            serve_stdio(tools)
            return
        server = HttpServer(tools, port=port or 0)
        if as_json:
            print_json_line({"address": server.address, "port": server.port, "token": server.token})
        else:
            print_line(server.address)
            print_line(f"Authorization: Bearer {server.token}")
        sys.stdout.flush()
        server.run()
    except KeyboardInterrupt:
        pass  # the usual end
