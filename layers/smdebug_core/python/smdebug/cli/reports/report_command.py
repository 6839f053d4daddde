"""`smdebug report`: write a run as one page of HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import click

from smdebug.amounts import size
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good, strong
from smdebug.cli.answers.diagnosis_output import print_in_short, print_issues
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import (
    code_despite,
    unread_file_warnings,
    warn_of_unread_files,
)
from smdebug.cli.answers.progress import Progress, progress
from smdebug.cli.arguments.choice_options import (
    rule_file_option,
    rule_option,
    rules_option,
    set_option,
)
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import attempt_option, in_an_existing_folder, open_path
from smdebug.cli.arguments.service_options import stack_option
from smdebug.cli.runs.evaluate_command import wanted_rules

if TYPE_CHECKING:
    from smdebug.diagnosis import Issue
    from smdebug.reports import Verdict
    from smdebug.runs.left_out import LeftOut
    from smdebug.trials import Trial
    from smdebug.ui.embedding import Content


@click.command("report")
@click.argument("run", shell_complete=complete_place)
@click.option(
    "-o",
    "--output",
    callback=in_an_existing_folder,
    shell_complete=complete_place,
    metavar="FILE",
    help="Write to this file (default: NAME-report.html).",
)
@rule_option("Evaluate this rule, as for `smdebug evaluate`; can be repeated.")
@set_option("Set a parameter of a rule.")
@rule_file_option()
@rules_option("Use this rules.json.")
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
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Use N processes (default: one per core).",
)
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
    By default, the rules of the run's rules.json are evaluated, and the default rules.

    \b
    Examples:
      smdebug report ./my-run -o report.html --open
      smdebug report s3://bucket/my-run --rule VanishingGradient
      smdebug report resnet-50 --deployed
      smdebug report ./my-run --rule-file my_rule.py
      smdebug report ./after --compare ./before

    Exits with 0 if nothing was found, with 1 if something was, and with 3 if a rule failed, part of the run
    could not be read, or no rule had anything to check.
    """
    from smdebug.reports.gathering import issues_in
    from smdebug.reports.writing import write_page
    from smdebug.ui.embedding import page_of

    choice = _RuleChoice(rules, settings, rule_file, rules_file)
    if deployed and attempt is not None:
        raise click.UsageError("--deployed shows the newest attempt: leave out --attempt")
    if deployed and (choice.is_any or no_rules):
        raise click.UsageError("--deployed shows existing findings, and cannot be combined with rule options")
    if no_rules and choice.is_any:
        raise click.UsageError("--no-rules cannot be combined with other rule options")
    against = None if other is None else open_path(other)  # fail before the rules are evaluated
    with _Bars() as bars:
        if deployed:
            judged = _deployed(stack, run)
        elif no_rules:
            judged = _Judged(open_path(run, attempt))
        else:
            judged = _evaluated(open_path(run, attempt), choice, every_step, jobs, bars)
        gaps = {
            trial.path: warn_of_unread_files(trial) for trial in (judged.trial, against) if trial is not None
        }
        content = _content(judged, against, deployed, gaps, bars)
    issues = issues_in(judged.verdicts, judged.trial)
    place = Path(output or f"{judged.trial.name}-report.html").expanduser()
    write_page(place, page_of(content))
    left_out = [gap for known in gaps.values() for gap in known]
    if as_json:
        _print_json(place, issues, judged.verdicts, left_out)
    else:
        _print(place, issues, judged.verdicts, is_partial=bool(gaps[judged.trial.path]))
    if open_it:
        click.launch(place.resolve().as_uri())
    return code_despite(left_out, _code(judged.verdicts))


def _code(verdicts: Sequence[Verdict]) -> int:
    if any(verdict.has_failed for verdict in verdicts):
        return exit_codes.FAILED
    if verdicts and all(verdict.not_checked for verdict in verdicts):
        return exit_codes.FAILED
    return exit_codes.FOUND if any(verdict.is_bad for verdict in verdicts) else exit_codes.PASSED


class _RuleChoice(NamedTuple):
    """Which rules to evaluate; empty for those that judge the run."""

    rules: tuple[str, ...]
    settings: tuple[str, ...]
    rule_file: str | None
    rules_file: str | None

    @property
    def is_any(self) -> bool:
        return bool(self.rules or self.settings or self.rule_file or self.rules_file is not None)


class _Judged(NamedTuple):
    """A run and the results of its rules."""

    trial: Trial
    verdicts: tuple[Verdict, ...] = ()
    latency: Mapping[str, tuple[float, float]] = MappingProxyType({})
    notes: tuple[str, ...] = ()


class _Bars:
    """The progress bars of a command, of which the last one is shown."""

    def __init__(self) -> None:
        self._shown: Progress | None = None

    def next(self, label: str, total: int | None) -> Callable[[int], None]:
        """Replace the current bar; return the function that advances the new one."""
        self._clear()
        self._shown = Progress(label, total)
        return self._shown.advance

    def _clear(self) -> None:
        if self._shown is not None:
            self._shown.clear()

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()


def _evaluated(trial: Trial, choice: _RuleChoice, every_step: bool, jobs: int | None, bars: _Bars) -> _Judged:
    from smdebug.reports.writing import evaluated, evaluations_in, notes_on, steps_worth

    wanted = wanted_rules(trial, *choice, ())
    most = None if every_step else steps_worth(trial)
    verdicts = evaluated(
        trial,
        wanted,
        file=choice.rule_file,
        jobs=jobs,
        most_steps=most,
        progress=bars.next("evaluating", evaluations_in(trial, wanted, most)),
    )
    return _Judged(trial, verdicts, notes=tuple(notes_on(trial, verdicts, most)))


def _deployed(stack: str | None, name: str) -> _Judged:
    from smdebug.cli.arguments.service_options import watched_run
    from smdebug.runs.opening import IMPATIENT
    from smdebug.runs.verdicts import latency_of, of_service

    run = watched_run(stack, name)
    findings = run.findings()
    verdicts = of_service(run.statuses(), findings)
    trial = run.trial(name=name.rstrip("/").rpartition("/")[2], wait_limits=IMPATIENT)
    return _Judged(trial, verdicts, latency_of(findings))


def _content(
    judged: _Judged,
    against: Trial | None,
    deployed: bool,
    gaps: Mapping[str, Sequence[LeftOut]],
    bars: _Bars,
) -> Content:
    """Return the content of the page."""
    from smdebug.reports.gathering import gather, work_of
    from smdebug.runs.comparing import compare

    trial = judged.trial
    unread = [text for path, known in gaps.items() for text in unread_file_warnings(known, path)]
    comparison = None if against is None else compare(trial, against, progress=progress("comparing"))
    work = sum(work_of(each) for each in (trial, against) if each is not None)
    return gather(
        trial,
        judged.verdicts,
        other=against,
        comparison=comparison,
        latency=judged.latency,
        deployed=deployed,
        notes=[*judged.notes, *unread],
        progress=bars.next("gathering", work),
    )


def _print_json(
    place: Path,
    issues: Sequence[Issue],
    verdicts: Sequence[Verdict],
    left_out: Sequence[LeftOut],
) -> None:
    print_json(
        {
            "output": str(place),
            "bytes": place.stat().st_size,
            "issues": [issue.to_dict() for issue in issues],
            "verdicts": [
                {
                    "name": verdict.name,
                    "status": verdict.status,
                    "steps_found": list(verdict.steps_found),
                }
                for verdict in verdicts
            ],
            "left_out": left_out,
        }
    )


def _print(place: Path, issues: Sequence[Issue], verdicts: Sequence[Verdict], *, is_partial: bool) -> None:
    from smdebug.rules.rule_sets import default_rules

    print_issues(issues)
    in_short = bool(verdicts) and {verdict.rule for verdict in verdicts} <= set(default_rules())
    marks = {"bad": bad("✗"), "failed": strong("!"), "good": good("✓"), "none": faint("–")}
    for verdict in verdicts:
        if not in_short or verdict.has_failed:
            print_line(f"{marks[verdict.kind]} {verdict.sentence}")
    if in_short:
        print_in_short(
            [verdict.name for verdict in verdicts if verdict.kind == "good"],
            {verdict.name: verdict.not_checked for verdict in verdicts if verdict.kind == "none"},
            is_partial=is_partial,
            shown_by="the page shows which.",
        )
    print_line(f"{size(place.stat().st_size)} written to {place}")
