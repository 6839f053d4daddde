"""`smdebug runs`: list the runs of a folder or bucket, or of a deployed debugger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from smdebug.amounts import counted, number
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint
from smdebug.cli.answers.output import moment, output_options, print_json, print_line, print_table
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.service_options import debugger_at, stack_option
from smdebug.service.tables import cell

if TYPE_CHECKING:
    from smdebug.runs.listing import ListedRun

_MOST_COLUMNS = 5


@click.command("runs")
@click.argument("place", required=False, shell_complete=complete_place)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help='List only runs with this configuration: "lr<1e-3", "tags=baseline"; can be repeated.',
)
@click.option("--failing", is_flag=True, help="Evaluate each run, and list those with problems.")
@click.option("--watched", is_flag=True, help="List only unfinished runs of the deployed debugger.")
@stack_option
@output_options
def command(
    place: str | None,
    conditions: tuple[str, ...],
    failing: bool,
    watched: bool,
    stack: str | None,
    as_json: bool,
) -> int:
    """List the runs at and below PLACE; without PLACE, those of the deployed debugger, newest first.

    PLACE is a folder or s3://bucket/prefix. The columns are the hyperparameters in which the runs differ. A
    CONDITION is a name, one of < <= > >= = != ~ and a value; ~ matches part of a text. Names are those of the
    configuration (`lr` is also `optimizer.lr`), and tags, note, commit, branch, dirty, command, host, python,
    torch and other packages, loss, best_loss, steps, state and name. `loss` is the last of the training.

    \b
    Examples:
      smdebug runs ./runs
      smdebug runs s3://bucket/team --where "lr<1e-3" --failing
      smdebug runs ./runs --where optimizer=adam --where "loss>2" --json
      smdebug runs --watched

    Exits with 0, with 1 if --failing lists a run, and with 3 if PLACE or the debugger cannot be read.
    """
    if place is None:
        if conditions or failing:
            raise click.UsageError("--where and --failing need a PLACE: smdebug runs ./runs --failing")
        _print_deployed(stack, watched, as_json)
        return exit_codes.PASSED
    if watched or stack is not None:
        raise click.UsageError("--watched and --stack are for the deployed debugger, without a PLACE")
    from smdebug.runs.conditions import parse_condition
    from smdebug.runs.listing import list_runs

    where = [parse_condition(condition) for condition in conditions]
    runs = list_runs(place, where=where, failing=failing, progress=progress("reading runs"))
    if as_json:
        print_json([run.to_dict() for run in runs])
    else:
        _print_runs(runs, [condition.name for condition in where])
    return exit_codes.FOUND if failing and runs else exit_codes.PASSED


def _print_runs(runs: list[ListedRun], asked: list[str]) -> None:
    from smdebug.runs.conditions import key_of
    from smdebug.runs.listing import varying
    from smdebug.runs.origins import value_in_words

    if not runs:
        print_line("No run matches.")
        return
    of_config = dict.fromkeys(name for run in runs for name in run.origin.config)
    named = [key for name in asked if (key := key_of(name, of_config)) is not None]
    shown = list(dict.fromkeys([*named, *varying(runs, _MOST_COLUMNS)]))
    judged = any(run.problems is not None for run in runs)
    print_table(
        ("run", "state", "steps", "loss", "saved", *shown, *(["problem"] if judged else [])),
        [
            (
                run.name,
                run.state,
                run.steps,
                number(run.loss),
                moment(run.saved_at),
                *(value_in_words(run.origin.config.get(name)) for name in shown),
                *([_problems(run.problems or ())] if judged else []),
            )
            for run in runs
        ],
    )
    for run in runs:
        if run.error:
            print_line(bad(f"{run.name}: ") + run.error)
    print_line(faint(counted(len(runs), "run")))


def _problems(problems: tuple[str, ...]) -> str:
    if not problems:
        return ""
    return problems[0] + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _print_deployed(stack: str | None, watched: bool, as_json: bool) -> None:
    runs = debugger_at(stack).runs(watched=watched)
    if as_json:
        print_json(runs.to_dict())
        return
    if not runs:
        print_line("No runs yet.")
        return
    print_table(
        (
            "run",
            "state",
            "verdict",
            "since",
            "workers",
            "evaluated through",
            "rules",
            "open issues",
        ),
        [
            (
                run.run,
                run.state,
                run.verdict,
                moment(run.first_seen),
                run.workers,
                run.evaluated_through,
                cell(run.rules),
                run.open_issues or None,
            )
            for run in runs
        ],
    )
    for run in runs:
        if run.trouble:
            print_line(bad(f"{run.run}: ") + run.trouble)
