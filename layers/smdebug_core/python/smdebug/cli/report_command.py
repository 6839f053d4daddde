"""`smdebug report`: write a run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smdebug.cli import exit_codes
from smdebug.cli.choice_options import rule_file_option, rule_option, rules_option, set_option
from smdebug.cli.colours import bad, faint, good, strong
from smdebug.cli.completers import complete_place
from smdebug.cli.diagnosis_output import print_in_short, print_issues
from smdebug.cli.evaluate_command import wanted_rules
from smdebug.cli.inputs import attempt_option, in_an_existing_folder, open_path
from smdebug.cli.output import output_options, print_json, print_line, size
from smdebug.cli.partial_reads import code_despite, unread_file_warnings, warn_of_unread_files
from smdebug.cli.progress import Progress, progress
from smdebug.cli.service_options import stack_option

if TYPE_CHECKING:
    from smdebug.reports import Verdict
    from smdebug.runs.left_out import LeftOut
    from smdebug.trials import Trial


@click.command("report")
@click.argument("run", shell_complete=complete_place)
@click.option(
    "-o",
    "--output",
    callback=in_an_existing_folder,
    shell_complete=complete_place,
    metavar="FILE",
    help="Output file (default: NAME-report.html).",
)
@rule_option("A rule to evaluate, as for `smdebug evaluate`; can be repeated.")
@set_option("Set a parameter of a rule.")
@rule_file_option
@rules_option("A rules.json.")
@click.option("--no-rules", is_flag=True, help="Evaluate no rules: only curves and tensors.")
@click.option(
    "--compare",
    "other",
    shell_complete=complete_place,
    metavar="PATH",
    help="Also show where another run diverges from it.",
)
@click.option("--deployed", is_flag=True, help="Show the findings of the deployed debugger.")
@click.option("--every-step", is_flag=True, help="Evaluate rules at every step of a long run.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (one per core).")
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@stack_option
@attempt_option
@output_options
def command(
    run: str,
    output: str | None,
    rules: tuple[str, ...],
    settings: tuple[str, ...],
    rule_file: str | None,
    rules_file: str | None,
    no_rules: bool,
    other: str | None,
    deployed: bool,
    every_step: bool,
    jobs: int | None,
    open_it: bool,
    stack: str | None,
    attempt: int | None,
    as_json: bool,
) -> int:
    """Write RUN as one self-contained page of HTML: verdict, curves, tensors, distributions.

    RUN is a folder or s3://bucket/prefix, or with --deployed a run that the deployed debugger watches.
    By default, the rules of the run's rules.json are evaluated, or else the default set.

    \b
    Examples:
      smdebug report ./my-run -o report.html --open
      smdebug report s3://bucket/my-run --rule VanishingGradient
      smdebug report resnet-50 --deployed
      smdebug report ./my-run --rule-file my_rule.py
      smdebug report ./after --compare ./before

    Exits with 0 if nothing was found, with 1 if something was, and with 3 if part could not be read.
    """
    from smdebug.reports import gather, page_of
    from smdebug.reports.curves import curves_of
    from smdebug.reports.gathering import work_of
    from smdebug.reports.writing import evaluated, looks_of, notes_on, steps_worth, write_page
    from smdebug.rules.rule_sets import default_rules
    from smdebug.runs.comparing import compare

    if deployed and attempt is not None:
        raise click.UsageError("--deployed shows the newest attempt: leave out --attempt")
    has_rules = bool(rules or settings or rule_file or rules_file is not None)
    if deployed and (has_rules or no_rules):
        raise click.UsageError(
            "--deployed shows existing findings, and cannot be combined with rule options"
        )
    if no_rules and has_rules:
        raise click.UsageError("--no-rules cannot be combined with other rule options")
    bars: list[Progress] = []

    def bar(label: str, total: int | None) -> Progress:
        for before in bars:
            before.clear()
        bars.append(Progress(label, total))
        return bars[-1]

    latency: dict[str, tuple[float, float]] = {}
    verdicts: tuple[Verdict, ...] = ()
    notes: list[str] = []
    gaps: list[LeftOut] = []
    against = None if other is None else open_path(other)  # fail before the rules are evaluated
    try:
        if deployed:
            trial, verdicts, latency = _deployed(stack, run)
        else:
            trial = open_path(run, attempt)
            if not no_rules:
                wanted = (
                    wanted_rules(trial, rules, settings, rule_file, rules_file, ())
                    if has_rules
                    else None
                )
                most = None if every_step else steps_worth(trial)
                evaluating = bar("evaluating", looks_of(trial, wanted, most))
                verdicts = evaluated(
                    trial,
                    wanted,
                    file=rule_file,
                    jobs=jobs,
                    most_steps=most,
                    progress=evaluating.advance,
                )
                notes = notes_on(trial, verdicts, most)
        for item in (trial, *(() if against is None else (against,))):
            gaps_of_one = warn_of_unread_files(item)
            gaps += gaps_of_one
            notes += unread_file_warnings(gaps_of_one, item.path)
        comparison = (
            None if against is None else compare(trial, against, progress=progress("comparing"))
        )
        found = gather(
            trial,
            verdicts,
            latency=latency,
            deployed=deployed,
            notes=notes,
            progress=bar("gathering", work_of(trial, verdicts)).advance,
        )
        others = () if against is None else curves_of(against, bar("comparing", None).advance)
        page = page_of(found, comparison=comparison, others=others)
    finally:
        for shown in bars:
            shown.clear()
    place = Path(output or f"{trial.name}-report.html").expanduser()
    write_page(place, page)
    has_found = any(verdict.is_bad or verdict.has_failed for verdict in verdicts)
    if as_json:
        summaries = [
            {
                "name": verdict.name,
                "status": verdict.status,
                "steps_found": list(verdict.steps_found),
            }
            for verdict in verdicts
        ]
        written = {"output": str(place), "bytes": place.stat().st_size}
        issues = [issue.to_dict() for issue in found.issues]
        print_json({**written, "issues": issues, "verdicts": summaries, "left_out": gaps})
    else:
        print_issues(found.issues)
        in_short = bool(verdicts) and {verdict.rule for verdict in verdicts} <= set(default_rules())
        marks = {"bad": bad("✗"), "failed": strong("!"), "good": good("✓"), "none": faint("–")}
        for verdict in verdicts:
            if not in_short or verdict.has_failed:
                print_line(f"{marks[verdict.kind]} {verdict.sentence}")
        if in_short:
            print_in_short(
                [verdict.name for verdict in verdicts if verdict.kind == "good"],
                {item.name: item.not_checked for item in verdicts if item.kind == "none"},
            )
        print_line(f"{size(place.stat().st_size)} written to {place}")
    if open_it:
        click.launch(place.resolve().as_uri())
    return code_despite(gaps, exit_codes.FOUND if has_found else exit_codes.PASSED)


def _deployed(
    stack: str | None, name: str
) -> tuple[Trial, tuple[Verdict, ...], dict[str, tuple[float, float]]]:
    from smdebug.cli.service_options import watched_run
    from smdebug.reports.verdicts import latency_of, of_service
    from smdebug.runs.opening import IMPATIENT

    run = watched_run(stack, name)
    findings = run.findings()
    verdicts = of_service(run.statuses(), findings)
    return (
        run.trial(name=name.rstrip("/").rpartition("/")[2], wait_limits=IMPATIENT),
        verdicts,
        latency_of(findings),
    )
