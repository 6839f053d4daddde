"""`smdebug status`: show the rule status of a watched run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, good, strong
from smdebug.cli.answers.output import (
    Styled,
    output_options,
    print_json,
    print_json_line,
    print_line,
    print_table,
)
from smdebug.cli.arguments.inputs import FiniteRange
from smdebug.cli.arguments.service_options import stack_option, watched_run

if TYPE_CHECKING:
    from smdebug.service.news import News
    from smdebug.service.run_status import RuleStatusOf, RunSnapshot


@click.command("status")
@click.argument("run")
@click.option("-w", "--watch", is_flag=True, help="Keep printing news until the run ends.")
@click.option(
    "--until",
    metavar="WHAT",
    default="finished",
    help="With --watch: stop at finished, found (the first finding) or a step number.",
)
@click.option("--timeout", type=FiniteRange(0), metavar="SECONDS", help="With --watch: stop after this time.")
@stack_option
@output_options
def command(
    run: str, watch: bool, until: str, timeout: float | None, stack: str | None, as_json: bool
) -> int:
    """Show rule status for RUN: its location, its prefix, or its SageMaker job.

    With --watch and --json, each news item is a line of JSON.

    \b
    Examples:
      smdebug status resnet-50
      smdebug status s3://bucket/resnet-50 --watch
      smdebug status resnet-50 --watch --until found && echo "nothing was found"

    Exits with 0 if no rule has findings, with 1 if one has, and with 3 if one has failed or a finished run
    was not evaluated as a whole or had no data that a rule could check.
    """
    if not watch and until != "finished":
        raise click.UsageError("--until requires --watch")
    chosen = watched_run(stack, run)
    if watch:
        wanted = int(until) if until.isdecimal() else until
        seen = chosen.wait(wanted, timeout=timeout, on_news=_print_news_in_json if as_json else _print_news)
    else:
        seen = chosen.look()
        if as_json:
            print_json(seen.to_dict())
        else:
            _print(seen)
    return _code(seen)


def _code(seen: RunSnapshot) -> int:
    from smdebug.service.records import RuleStatus, RunVerdict

    if seen.has_found_something:
        return exit_codes.FOUND
    if seen.summary.verdict in (RunVerdict.INCOMPLETE, RunVerdict.NOT_CHECKED) or any(
        status.status is RuleStatus.ERROR for status in seen.statuses
    ):
        return exit_codes.FAILED
    return exit_codes.PASSED


def _print(seen: RunSnapshot) -> None:
    from smdebug.service.run_status import headline

    print_line(strong(headline(seen.summary)))
    if not seen.statuses:
        print_line("No rules.")
        return
    print_table(
        ("rule", "status", "issue since", "last found", "last good", "through", "why"),
        [
            (
                status.name,
                _status_text(status),
                status.issue_since,
                status.last_found,
                status.last_good,
                status.evaluated_through,
                status.reason,
            )
            for status in seen.statuses
        ],
    )


def _status_text(rule: RuleStatusOf) -> str:
    text = rule.status.value
    if text in ("IssuesFound", "Error"):
        return Styled(bad(text))
    return Styled(good(text)) if text == "NoIssuesFound" else text


def _print_news(news: News) -> None:
    print_line(str(news))


def _print_news_in_json(news: News) -> None:
    print_json_line(news.to_dict())
