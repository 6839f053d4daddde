"""`smdebug ui`: show runs in the browser while they train."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from smdebug.cli.answers.output import output_options, print_json_line, print_line
from smdebug.cli.arguments.choice_options import rule_file_option
from smdebug.cli.arguments.completers import complete_place, complete_rule_or_all
from smdebug.cli.arguments.inputs import read_file
from smdebug.cli.arguments.service_options import debugger_at, stack_option
from smdebug.cli.this_machine.browser import has_browser, open_browser, way_here
from smdebug.exceptions import ObjectMissing


@click.command("ui")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_place)
@click.option(
    "--deployed",
    is_flag=True,
    help="Show the runs of a deployed debugger, with the verdicts in its table.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_rule_or_all,
    help="Evaluate only this rule; can be repeated. Default: the run's rules, and the default rules.",
)
@rule_file_option("Let the page evaluate the rules in this Python file.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Listen on this port (default: a free one).",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Accept requests under this host name, such as that of a proxy; can be repeated.",
)
@click.option(
    "--no-background",
    is_flag=True,
    help="Check a run once its page is opened, not in the background.",
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@stack_option
@output_options
def command(
    paths: tuple[str, ...],
    deployed: bool,
    rules: tuple[str, ...],
    rule_file: str | None,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    no_background: bool,
    no_browser: bool,
    stack: str | None,
    as_json: bool,
) -> None:
    """Show the runs at and below each PATH in the browser, live: what is wrong, and since when.

    PATH is a folder or an S3 prefix, of a run or of many; without one, the current folder. The address
    that is printed contains a token, without which nothing can be read. Where there is no browser, a second
    line says how to forward the port. Stop it with Ctrl-C.

    \b
    Examples:
      smdebug ui
      smdebug ui runs/a runs/b
      smdebug ui s3://bucket/experiments --no-browser --port 8765
      smdebug ui --deployed --stack smdebug

    Exits with 0 when Ctrl-C ends it, and with 3 if no PATH can be read.
    """
    try:
        from smdebug.ui.web.serving import UiServer
    except ImportError:
        from smdebug.ui.web.inline import missing_packages

        raise click.ClickException(missing_packages()) from None
    if rule_file is not None:
        read_file(rule_file)
    _refuse_what_is_not_there(paths)
    opens = not (no_browser or as_json) and has_browser(os.environ)
    debugger = debugger_at(stack) if deployed or stack is not None else None
    server = UiServer(
        paths or ([] if debugger else ["."]),
        rules=list(rules) or None,
        rule_file=rule_file,
        host=host,
        port=port,
        allowed_hosts=allowed_hosts,
        debugger=debugger,
        background=not no_background,
    )
    server.start()
    try:
        if as_json:
            print_json_line({"address": server.address, "port": server.port})
        else:
            print_line(server.address)
            if not opens and (way := way_here(host, server.port, os.environ)):
                print_line(way)
        sys.stdout.flush()
        if opens:
            open_browser(server.address)
        server.wait()
    except KeyboardInterrupt:
        pass  # the usual end
    finally:
        server.stop()


def _refuse_what_is_not_there(paths: tuple[str, ...]) -> None:
    """Refuse folders of which none exists: nothing would ever be shown."""
    local = [path for path in paths if "://" not in path]
    missing = [path for path in local if not Path(path).expanduser().exists()]
    if missing and len(missing) == len(paths):
        raise ObjectMissing(
            ", ".join(missing), "it does not exist; to wait for a run, show the folder that it will be in"
        )
