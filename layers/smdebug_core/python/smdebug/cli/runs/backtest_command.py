"""`smdebug backtest`: evaluate a rule on every run of a folder or bucket."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint
from smdebug.cli.answers.output import (
    LongTable,
    cell_text,
    json_text,
    output_options,
    print_line,
    print_note,
    print_parts,
)
from smdebug.cli.answers.progress import Progress
from smdebug.cli.answers.table_layout import cut
from smdebug.cli.arguments.choice_options import rule_file_option, rule_option, set_option, single_option
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import FiniteRange, in_an_existing_folder, read_file
from smdebug.cli.runs.backtest_deployed import AccountChoice, deployed_options, in_the_account
from smdebug.cli.runs.evaluate_command import parameters_of

if TYPE_CHECKING:
    from smdebug.backtesting.backtest import Backtest
    from smdebug.backtesting.labels import Labels
    from smdebug.backtesting.question import Question, RuleEntry
    from smdebug.backtesting.rows import Row
    from smdebug.backtesting.summary import Overview

_MOST_ROWS = 40
_LONGEST = 1e8  # seconds: three years, which every clock can tell
_MOST_NAMES, _WIDEST_NAME = 5, 60
_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_MARKS = {"IssuesFound": "✗", "NoIssuesFound": "✓", "NotChecked": "–"}


@click.command("backtest")
@click.argument("places", nargs=-1, shell_complete=complete_place)
@rule_file_option("Evaluate the rules that this Python file defines.")
@rule_option("Evaluate this rule: a class in --rule-file, a built-in one, or a set; can be repeated.")
@set_option("Set a parameter; with several rules, prefix the rule's name.")
@single_option(
    "--against",
    shell_complete=complete_place,
    metavar="FILE",
    help="Compare with an older version of --rule-file.",
)
@single_option(
    "--expr",
    metavar="CONDITION",
    help='Evaluate this condition instead of a rule: "loss > 3 * rolling_median(loss, 50)".',
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help='Take only runs with this configuration, as in `smdebug runs`: "lr<1e-3"; can be repeated.',
)
@click.option("--since", metavar="WHEN", help="Take only runs that saved a step since: 2026-01-31, 12h, 7d.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Take the first N runs.")
@single_option(
    "--labels",
    "labels_file",
    shell_complete=complete_place,
    metavar="FILE",
    help="Read which runs are failing from a CSV file with the columns run and label.",
)
@click.option(
    "--failing-tag", default="failing", show_default=True, metavar="TAG", help="Tag of failing runs."
)
@click.option(
    "--healthy-tag", default="healthy", show_default=True, metavar="TAG", help="Tag of healthy runs."
)
@click.option(
    "--timeout",
    type=FiniteRange(0, _LONGEST, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up on a run after this time.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), metavar="N", help="Use N processes (default: all cores)."
)
@click.option(
    "--journal",
    shell_complete=complete_place,
    metavar="FILE",
    help="Keep the verdicts so far, or the series for --expr, in this file.",
)
@click.option("--fresh", is_flag=True, help="Judge every run anew.")
@click.option("--all-runs", is_flag=True, help="Show also the runs that passed.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    shell_complete=complete_place,
    callback=lambda ctx, parameter, files: [in_an_existing_folder(ctx, parameter, file) for file in files],
    metavar="FILE",
    help="Write the table to this .json, .parquet or .html file; can be repeated.",
)
@deployed_options
@output_options
def command(
    places: tuple[str, ...],
    rule_file: str | None,
    rules: tuple[str, ...],
    settings: tuple[str, ...],
    against: str | None,
    expr: str | None,
    conditions: tuple[str, ...],
    since: str | None,
    limit: int | None,
    labels_file: str | None,
    failing_tag: str,
    healthy_tag: str,
    timeout: float,
    jobs: int | None,
    journal: str | None,
    fresh: bool,
    all_runs: bool,
    outputs: list[str],
    as_json: bool,
    **in_account: Any,
) -> int:
    """Evaluate rules on all runs at and below PLACES, as `smdebug evaluate` would on each.

    A PLACE is a run, a folder of runs or s3://bucket/prefix. The table says for each run what the rule found,
    since which step, and how long it took. With labels it also says how many of the failing runs were found,
    and how many of the healthy ones. The page (-o page.html) shows the rule's statistic over healthy and
    failing runs, and what each threshold would have given.

    Verdicts are kept while the runs are judged. After Ctrl-C, or when runs were added, call the command
    again: only runs that are new or have changed are judged.

    With --deployed the application in your account judges the runs of its bucket, many at once. It says
    beforehand what that will cost. Ctrl-C leaves it running, and the same command follows it again.

    \b
    Examples:
      smdebug backtest ./runs --rule-file my_rule.py
      smdebug backtest s3://bucket/team --rule-file my_rule.py --since 30d
      smdebug backtest ./runs --rule-file my.py --labels runs.csv -o page.html
      smdebug backtest ./runs --expr 'loss>3*rolling_median(loss, 50)'
      smdebug backtest ./runs --rule-file new.py --against old.py
      smdebug backtest ./runs --rule VanishingGradient --where tags=a --json
      smdebug backtest s3://bucket/team --rule-file r.py --deployed --dry-run

    Exits with 0, with 1 if --against shows a difference, and with 3 if a rule failed, a run could not be
    read, or no run had anything to check.
    """
    from smdebug.backtesting.backtest import Options, backtest
    from smdebug.backtesting.expressions.backtest_expression import backtest_expression
    from smdebug.backtesting.expressions.grammar import parse
    from smdebug.backtesting.labels import Labels, read_labels
    from smdebug.backtesting.pool import cores
    from smdebug.backtesting.question import Question
    from smdebug.backtesting.summary import overview
    from smdebug.backtesting.table_files import check_output, json_parts, write_table
    from smdebug.runs.conditions import parse_condition

    account = AccountChoice(**in_account)
    account.refuse_wrong(has_places=bool(places), has_expression=expr is not None)
    for file in (rule_file, against, labels_file):
        if file is not None:
            read_file(file)
    for output in outputs:
        check_output(output)
    if against is not None and rule_file is None:
        raise click.UsageError("--against needs --rule-file, the newer version of the rule")
    if expr is not None:
        if rules or settings or rule_file:
            raise click.UsageError("--expr cannot be combined with --rule, --rule-file and --set")
        parse(expr)
    question = Question(
        () if expr is not None or account.collect else rules_asked(rules, settings, rule_file),
        None if rule_file is None else str(Path(rule_file).expanduser().resolve()),
        None if against is None else str(Path(against).expanduser().resolve()),
        tuple(map(parse_condition, conditions)),
        None if since is None else _moment_of(since),
        timeout,
    )
    bar = Progress("judging runs", None)

    def progress(_: int, total: int | None) -> None:
        bar.expect(total)
        bar.advance(1)

    labels = Labels(
        read_labels(Path(labels_file).expanduser()) if labels_file else {}, failing_tag, healthy_tag
    )
    options = Options(
        jobs or cores(),
        limit,
        labels,
        None if journal is None else Path(journal).expanduser(),
        fresh,
        progress,
    )
    try:
        if account.is_chosen:
            judged = in_the_account(account, question, places, options, as_json=as_json)
            if judged is None:
                return exit_codes.PASSED
            table = judged
        elif expr is None:
            table = backtest(question, places, options)
        else:
            table = backtest_expression(expr, question, places, options)
    finally:
        bar.clear()
    for output in outputs:
        write_table(table, output)
    found = overview(table.rows, most_notable=_MOST_ROWS)
    if as_json:
        about = {**table.about(), "rules": [each.to_dict() for each in found.rules]}
        print_parts(json_parts(about, table.rows, partial(json_text, indent=2)))
    else:
        print_verdicts(table, found, question, all_runs=all_runs)
    for remark in table.remarks:
        print_note(cell_text(remark))
    if labels_file:
        _say_labels_of_no_run(labels, labels_file)
    for tag in labels.tags_of_no_run() if table.rows else ():
        print_note(f"No judged run has the tag {cut(cell_text(tag), _WIDEST_NAME)}")
    if any(rule.changed for rule in found.rules):
        return exit_codes.FOUND
    has_failed = found.statuses - _MARKS.keys() or found.statuses == {"NotChecked"}
    return exit_codes.FAILED if has_failed else exit_codes.PASSED


def rules_asked(
    rules: tuple[str, ...], settings: tuple[str, ...], rule_file: str | None
) -> tuple[RuleEntry | str, ...]:
    """Return the rules that the options name: by default all that the file defines."""
    from smdebug.rules.generic import find_rule
    from smdebug.rules.loading import find_in, rules_in_file
    from smdebug.rules.rule_sets import SET_NAMES

    if not rules and rule_file is None:
        raise click.UsageError("Name a rule: --rule-file FILE, --rule NAME or --expr CONDITION")
    in_file = {} if rule_file is None else rules_in_file(rule_file)
    sets = [name.lower() for name in rules if name.lower() in SET_NAMES]
    names = [
        getattr(find_in(in_file, name), "__name__", None) or find_rule(name).name
        for name in rules
        if name.lower() not in SET_NAMES
    ]
    names = list(dict.fromkeys(names)) if rules else list(in_file)
    given = parameters_of(settings, names)
    return (*({"rule": name, "parameters": given.get(name, {})} for name in names), *dict.fromkeys(sets))


def _moment_of(text: str) -> float:
    """Return the moment in seconds of the epoch: a date, a date and time, or an age such as 7d."""
    age = re.fullmatch(r"(\d{1,9})([hdw])", text)
    if age:
        return time.time() - int(age[1]) * _UNITS[age[2]]
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"--since takes a date (2026-01-31) or an age (12h, 7d), not {text!r}"
        ) from None
    moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if moment > time.time():
        raise click.UsageError(f"--since {text} is in the future: no run has saved a step since")
    return moment


def print_verdicts(table: Backtest, found: Overview, question: Question, *, all_runs: bool) -> None:
    """Print the table and its sums: the first runs that did not pass, or all."""
    if not table.rows:
        print_line(_why_there_is_none(table, question))
        return
    several = len(found.rules) > 1
    columns = ["run", "status", "first finding", "onset", "findings", "steps", "seconds"]

    def cells(row: Row) -> Sequence[Any]:
        return (
            row.run,
            *[row.rule] * several,
            f"{_MARKS.get(row.status, '!')} {row.status}",
            row.first_finding or row.note,
            row.onset,
            row.findings or None,
            row.looked,
            round(row.seconds, 3),
            *[row.label] * found.is_labelled,
        )

    names = [*columns[:1], *["rule"] * several, *columns[1:], *["label"] * found.is_labelled]
    if all_runs or found.notable:
        shown = partial(_everything, table.rows) if all_runs else lambda: found.notable
        LongTable(names, lambda: map(cells, shown())).print()
    hidden = 0 if all_runs else len(table.rows) - len(found.notable)
    if hidden:
        verdicts = counted(hidden, "verdict")
        said = f"… and {verdicts} more" if found.notable else f"No findings in {verdicts}"
        print_line(faint(f"{said}; --all-runs shows them"))
    if question.against is not None:
        _print_changes(table)
    for summary in found.rules:
        print_line(str(summary))
    if table.reused:
        print_line(faint(f"{table.reused:,} of {counted(table.runs, 'run')} had been judged before"))


def _everything(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield findings, what has no verdict, and what passed; a million rows are never in memory together."""
    from smdebug.backtesting.rows import PASSED

    return chain(
        (row for row in rows if row.fires),
        (row for row in rows if not row.fires and row.status != PASSED),
        (row for row in rows if row.status == PASSED),
    )


def _why_there_is_none(table: Backtest, question: Question) -> str:
    if not question.selects:
        return "No run"
    options = " and ".join(["--where"] * bool(question.where) + ["--since"] * (question.since is not None))
    runs = "No run" if table.compared is None else f"None of {counted(table.compared, 'run')}"
    return f"{runs} satisfies {options}: `smdebug runs` shows their values, and when they saved a step last"


def _say_labels_of_no_run(labels: Labels, file: str) -> None:
    """Say on stderr which names of the file were those of no run: they may be misspelt."""
    names = labels.of_no_run()
    if not labels.of_run:
        print_note(f"{file} has no labels")
    if names:
        some = ", ".join(cut(cell_text(name), _WIDEST_NAME) for name in names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        some_of_all = f"{len(names):,} of its {counted(len(labels.of_run), 'name')}"
        print_note(
            f"{file}: no judged run has {some_of_all}: {some}{more}. "
            "A run is named by its path, its address, or its name below the place"
        )


def _print_changes(table: Backtest) -> None:
    """Print the differences from the older version, those with another verdict first."""
    differ = sum(row.changed is not None for row in table.rows)
    verdicts = sum(map(_has_other_verdict, table.rows))
    others = f", and the findings of {differ - verdicts:,} more" if differ > verdicts else ""
    print_line(f"{verdicts:,} of {len(table.rows):,} verdicts differ from the older version{others}")
    for of_verdict in (True, False):
        for row in table.rows:
            if row.changed is not None and _has_other_verdict(row) == of_verdict:
                print_line(f"{bad(row.run)} {row.rule}: {row.status_before} → {row.status}: {row.changed}")


def _has_other_verdict(row: Row) -> bool:
    return row.changed is not None and row.status_before != row.status
