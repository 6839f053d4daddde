"""The options of `smdebug backtest` that have the deployed application judge the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from smdebug.amounts import counted
from smdebug.cli.answers.colours import faint
from smdebug.cli.answers.output import print_json, print_line
from smdebug.cli.arguments.inputs import FiniteRange
from smdebug.cli.arguments.service_options import stack_option

if TYPE_CHECKING:
    from smdebug.backtesting.backtest import Backtest, Options
    from smdebug.backtesting.deployed.plan import Estimate
    from smdebug.backtesting.question import Question

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class AccountChoice:
    """What was asked of the application."""

    deployed: bool
    dry_run: bool
    budget: float
    slow_live_runs: bool
    cancel: bool
    collect: str | None
    stack: str | None

    @property
    def is_chosen(self) -> bool:
        return self.deployed or self.collect is not None

    def refuse_wrong(self, *, has_places: bool, has_expression: bool) -> None:
        """Raise `UsageError` for options that do not go together."""
        if not has_places and self.collect is None:
            raise click.UsageError("Missing argument 'PLACES...'.")
        if has_places and self.collect is not None:
            raise click.UsageError("--collect takes no PLACES: it shows a backtest that the application made")
        if self.deployed and self.collect is not None:
            raise click.UsageError("--collect cannot be combined with --deployed")
        if self.is_chosen and has_expression:
            raise click.UsageError(
                "--expr cannot be combined with --deployed: an expression takes seconds on this machine"
            )
        if not self.deployed and (self.dry_run or self.cancel):
            raise click.UsageError(f"{'--dry-run' if self.dry_run else '--cancel'} needs --deployed")


def deployed_options(function: F) -> F:
    """Add the options."""
    for option in reversed(
        (
            click.option(
                "--deployed", is_flag=True, help="Have the deployed application judge the runs of its bucket."
            ),
            click.option(
                "--dry-run", is_flag=True, help="Show what --deployed would cost, and start nothing."
            ),
            click.option(
                "--budget",
                type=FiniteRange(0, min_open=True),
                default=5.0,
                show_default=True,
                metavar="DOLLARS",
                help="Spend no more on --deployed.",
            ),
            click.option(
                "--slow-live-runs",
                is_flag=True,
                help="Start --deployed even in an account so small that live runs are slowed down.",
            ),
            click.option("--cancel", is_flag=True, help="Cancel the backtest that --deployed has started."),
            click.option(
                "--collect", metavar="ID", help="Show a backtest of the application: nightly-2026-01-31."
            ),
            stack_option,
        )
    ):
        function = option(function)
    return function


def in_the_account(
    choice: AccountChoice,
    question: Question,
    places: Sequence[str],
    options: Options,
    *,
    as_json: bool,
) -> Backtest | None:
    """Return the table; None if there is none, and something else was said."""
    from smdebug.backtesting.deployed.account import (
        DeployedOptions,
        backtest_in_account,
        cancel,
        collect,
    )
    from smdebug.backtesting.deployed.plan import Estimate
    from smdebug.service.backtests import connect_backtests

    account = connect_backtests(choice.stack)
    if choice.collect is not None:
        return collect(account, choice.collect, options)
    if choice.cancel:
        name = cancel(question, account, options.journal)
        said = (
            f"Cancelled {name}; its verdicts so far are kept"
            if name
            else "No backtest of these rules is running"
        )
        print_json({"cancelled": name or None}) if as_json else print_line(said)
        return None

    def begun(name: str, estimated: Estimate) -> None:
        click.echo(f"{in_words(estimated)}. Started as {name}", err=True)

    deployed = DeployedOptions(
        budget=choice.budget, is_dry=choice.dry_run, may_slow_live_runs=choice.slow_live_runs, begun=begun
    )
    try:
        found = backtest_in_account(question, places, account, options, deployed)
    except KeyboardInterrupt:
        click.echo(
            faint("It goes on in your account. Call the command again to follow it; --cancel ends it"),
            err=True,
        )
        raise
    if isinstance(found, Estimate):
        print_json(found.to_dict()) if as_json else print_line(in_words(found))
        return None
    return found


def in_words(estimated: Estimate) -> str:
    """Return what a backtest will take, as a sentence without its full stop."""
    from smdebug.backtesting.deployed.plan import in_dollars

    if not estimated.runs:
        return "Every run has been judged: nothing to start"
    cheap = f"about {in_dollars(estimated.dollars_bundled)}"
    bundles = f"{estimated.bundled:,} of the runs have a bundle"
    if estimated.saves_the_next:
        bundles += f", and this backtest bundles the others: the next one costs {cheap}"
    elif estimated.bundled < estimated.runs:
        bundles += f" ({cheap} if all had)"
    return (
        f"{counted(estimated.runs, 'run')} with {counted(estimated.steps, 'index file')} in "
        f"{counted(estimated.chunks, 'call')}: about {in_dollars(estimated.dollars)}, within "
        f"{_time(estimated.seconds)}; {bundles}"
        f"{'; live runs are slowed down meanwhile' if estimated.slows_live_runs else ''}"
    )


def _time(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < 90 else counted(math.ceil(seconds / 60), "minute")
