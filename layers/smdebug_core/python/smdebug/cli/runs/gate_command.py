"""`smdebug gate`: an exit code for pipelines."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, good
from smdebug.cli.answers.diagnosis_output import print_issues
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import warn_of_unread_files
from smdebug.cli.arguments.choice_options import rule_file_option, rule_option
from smdebug.cli.arguments.completers import complete_place, complete_set_or_file
from smdebug.cli.arguments.inputs import attempt_option, open_path
from smdebug.cli.runs.evaluate_command import wanted_rules

if TYPE_CHECKING:
    from smdebug.runs.evaluation.diagnosing import Diagnosis
    from smdebug.runs.evaluation.gating import Decision


@click.command("gate")
@click.argument("path", metavar="RUN", shell_complete=complete_place)
@click.option(
    "--rules",
    "set_or_file",
    metavar="SET|FILE",
    shell_complete=complete_set_or_file,
    help="Evaluate a set of rules, `default`, `usual` or `all`, or those of a rules.json. "
    "By default those of the run, and the default rules.",
)
@rule_option("Evaluate only this rule; can be repeated.")
@rule_file_option()
@click.option(
    "--max-age",
    metavar="DURATION",
    help="Refuse a run whose newest step was saved longer ago: 90s, 10m, 2h, 1d.",
)
@click.option("--ended", "must_have_ended", is_flag=True, help="Refuse a run that has not ended.")
@attempt_option
@output_options
def command(
    path: str,
    set_or_file: str | None,
    rules: tuple[str, ...],
    rule_file: str | None,
    max_age: str | None,
    must_have_ended: bool,
    attempt: int | None,
    as_json: bool,
) -> int:
    """Say by the exit code whether RUN may pass, for pipelines.

    Rules are evaluated at every saved step. A run in progress is judged by what it has saved so far; with
    --ended, it must have its end marker, which a training that was killed has not written. One that has
    raised an error, or was terminated, never passes. The age of a step is measured by the clock of this
    machine.

    \b
    Examples:
      smdebug gate ./my-run
      smdebug gate s3://bucket/my-run --rules default --max-age 10m
      smdebug gate ./my-run --ended --json

    Exits with 0 if the run passes, with 1 if a rule has detected a problem, with 3 if the run or part of it
    cannot be read or a rule failed, with 5 if no rule had anything to check, with 6 if nothing was saved
    within --max-age, and with 7 if the training has failed or, with --ended, the run has not ended.
    """
    from smdebug.runs.evaluation.diagnosing import diagnose
    from smdebug.runs.evaluation.gating import Age, GatedRun, decide, seconds_of

    limit = None if max_age is None else seconds_of(max_age)
    trial = open_path(path, attempt)
    named, file = _chosen(set_or_file, rules)
    with redirect_stdout(sys.stderr):  # keep what a rule prints out of the answer
        wanted = wanted_rules(trial, named, (), rule_file, file, ())
        found = diagnose(trial, wanted, file=rule_file)
    gaps = warn_of_unread_files(trial)
    last_step = max(trial.steps(), default=None)
    saved_at = None if last_step is None else trial.saved_at(last_step)
    age = Age(None if saved_at is None else max(0.0, time.time() - saved_at), limit)
    judged = GatedRun(
        issues=found.issues,
        passed=found.passed,
        failed=list(found.failed),
        left_out=len(gaps),
        last_step=last_step,
        has_ended=trial.loaded_all_steps,
        has_found=any(result.has_found for result in found.results),
        has_failed=trial.state == "failed",
    )
    decision = decide(judged, age, must_have_ended=must_have_ended)
    code = _CODES[decision.outcome.value]
    if as_json:
        print_json(
            {
                "path": trial.path,
                **decision.to_dict(),
                "exit_code": code,
                "ended": judged.has_ended,
                "last_step": last_step,
                "saved_at": None if saved_at is None else datetime.fromtimestamp(saved_at, UTC).isoformat(),
                "age_seconds": None if age.seconds is None else round(age.seconds, 3),
                "max_age_seconds": limit,
                "issues": [issue.to_dict() for issue in found.issues],
                "passed": list(found.passed),
                "not_checked": found.not_checked,
                "failed": found.failed,
                "left_out": gaps,
            }
        )
    else:
        _print(trial.path, found, decision)
    return code


def _print(path: str, found: Diagnosis, decision: Decision) -> None:
    print_issues(found.issues)
    for name, error in found.failed.items():
        print_line(f"{bad('!')} {name} failed: {error}")
    if decision.outcome.value == "passed":
        print_line(f"{good('✓')} {path} passes the gate: {decision.reason}")
    else:
        word = decision.outcome.value.replace("_", " ")
        print_line(f"{bad('✗')} {path} does not pass the gate ({word}): {decision.reason}")


_CODES = {
    "passed": exit_codes.PASSED,
    "failing": exit_codes.FOUND,
    "unreadable": exit_codes.FAILED,
    "not_checked": exit_codes.NOT_CHECKED,
    "stale": exit_codes.STALE,
    "not_ended": exit_codes.NOT_ENDED,
}


def _chosen(set_or_file: str | None, names: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Return the rules that are named, sets among them, and the file of rules."""
    from smdebug.rules.rule_sets import SET_NAMES

    if set_or_file is not None and set_or_file.lower() in SET_NAMES:
        return (*names, set_or_file), None
    return names, set_or_file
