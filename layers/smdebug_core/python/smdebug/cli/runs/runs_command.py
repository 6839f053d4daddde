"""`smdebug runs`: list the runs of a folder or bucket, or of a deployed debugger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
_MOST_METRICS = 3
_ALWAYS = {"name", "state", "last_step", "training_step", "loss", "saved_at"}


@click.command("runs")
@click.argument("place", required=False, shell_complete=complete_place)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help='List only runs with this configuration: "lr<1e-3", "tags=baseline"; can be repeated.',
)
@click.option(
    "--sort",
    metavar="NAME",
    help='Begin with the lowest value: "loss", "lr"; with the highest: "-accuracy".',
)
@click.option("--best", is_flag=True, help="List only the first run of that order; by default of best_loss.")
@click.option(
    "--columns",
    metavar="NAMES",
    help="Show these values, separated by commas, instead of the parameters in which the runs differ.",
)
@click.option("--failing", is_flag=True, help="Evaluate each run, and list those with problems.")
@click.option(
    "--last-good",
    is_flag=True,
    help="Evaluate each run, and show its last checkpoint before any problem began.",
)
@click.option("--watched", is_flag=True, help="List only unfinished runs of the deployed debugger.")
@stack_option
@output_options
def command(
    place: str | None,
    conditions: tuple[str, ...],
    sort: str | None,
    best: bool,
    columns: str | None,
    failing: bool,
    last_good: bool,
    watched: bool,
    stack: str | None,
    as_json: bool,
) -> int:
    """List the runs at and below PLACE; without PLACE, those of the deployed debugger, newest first.

    PLACE is a folder or s3://bucket/prefix. The columns are the hyperparameters in which the runs differ. A
    CONDITION is a name, one of < <= > >= = != ~ and a value; ~ matches part of a text. Names are those of the
    configuration (`lr` is also `optimizer.lr`), and tags, note, pinned, commit, branch, dirty, command, host,
    python, torch and other packages, loss, best_loss, steps, state and name, and of numbers that were logged.
    `loss` and what was logged are the last values.

    \b
    Examples:
      smdebug runs ./runs
      smdebug runs s3://bucket/team --where "lr<1e-3" --failing
      smdebug runs ./runs --where optimizer=adam --where "loss>2" --json
      smdebug runs ./runs --sort=-accuracy --columns accuracy,learning_rate
      smdebug runs ./runs --where tags=sweep --sort loss --best
      smdebug runs ./runs --last-good
      smdebug runs --watched

    Exits with 0, with 1 if --failing lists a run, and with 3 if PLACE or the debugger cannot be read.
    """
    if place is None:
        if conditions or failing or sort or best or columns or last_good:
            raise click.UsageError(
                "--where, --sort, --best, --columns, --failing and --last-good need a PLACE: "
                "smdebug runs ./runs --failing"
            )
        _print_deployed(stack, watched, as_json)
        return exit_codes.PASSED
    if watched or stack is not None:
        raise click.UsageError("--watched and --stack are for the deployed debugger, without a PLACE")
    from smdebug.runs.conditions import parse_condition
    from smdebug.runs.listing import list_runs, sorted_by

    where = [parse_condition(condition) for condition in conditions]
    runs = list_runs(place, where=where, failing=failing, judged=last_good, progress=progress("reading runs"))
    if (order := sort or ("best_loss" if best else "")) and runs:
        runs = sorted_by(runs, order)
    if best:
        runs = runs[:1]
    if as_json:
        print_json([run.to_dict() for run in runs])
    else:
        asked = [condition.name for condition in where] + [order.removeprefix("-")] * bool(order)
        _print_runs(runs, asked, columns, last_good)
    return exit_codes.FOUND if failing and runs else exit_codes.PASSED


def _print_runs(runs: list[ListedRun], asked: list[str], columns: str | None, last_good: bool) -> None:
    from smdebug.runs.conditions import Condition, key_of, refuse_unknown_names
    from smdebug.runs.listing import varying

    if not runs:
        print_line("No run matches.")
        return
    facts = [run.facts() for run in runs]
    every = dict.fromkeys(name for of_run in facts for name in of_run)
    if columns is not None:
        asked = [name for name in map(str.strip, columns.split(",")) if name]
        refuse_unknown_names([Condition(name, "=", "") for name in asked], facts)
    chosen = [key for name in asked if (key := key_of(name, every)) is not None and key not in _ALWAYS]
    if columns is None:
        logged = dict.fromkeys(name for run in runs for name in run.metrics)
        chosen += [*varying(runs, _MOST_COLUMNS), *list(logged)[:_MOST_METRICS]]
    shown = list(dict.fromkeys(chosen))
    judged = any(run.problems is not None for run in runs)
    print_table(
        (
            "run",
            "state",
            "step",
            "loss",
            "saved",
            *shown,
            *(["problem"] if judged else []),
            *(["last good checkpoint"] if last_good else []),
        ),
        [
            (
                run.name,
                run.state,
                run.last_step if run.training_step is None else run.training_step,
                number(run.loss),
                moment(run.saved_at),
                *(_in_words(of_run.get(key_of(name, of_run) or name)) for name in shown),
                *([_problems(run.problems or ())] if judged else []),
                *([_last_good(run)] if last_good else []),
            )
            for run, of_run in zip(runs, facts, strict=True)
        ],
    )
    for run in runs:
        for text in filter(None, (run.error, run.differs)):
            print_line(bad(f"{run.name}: ") + text)
    print_line(faint(counted(len(runs), "run")))


def _in_words(value: Any) -> str:
    from smdebug.runs.origins import value_in_words

    return number(value) if isinstance(value, float) else value_in_words(value)


def _last_good(run: ListedRun) -> str:
    good = run.last_good
    if good is None:
        return ""
    return good.path + (f" (step {good.step})" if good.step >= 0 else " (before the first step)")


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
