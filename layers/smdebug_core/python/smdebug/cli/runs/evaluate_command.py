"""`smdebug evaluate`: evaluate rules on a saved run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint
from smdebug.cli.answers.diagnosis_output import print_issues, print_others
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import Progress
from smdebug.cli.arguments.choice_options import (
    default_rules_option,
    rule_file_option,
    rule_option,
    rules_option,
    set_option,
)
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import attempt_option, open_path, read_file

if TYPE_CHECKING:
    from smdebug.runs.evaluation.diagnosing import Diagnosis
    from smdebug.runs.evaluation.rule_results import RuleResult
    from smdebug.service.records import RuleConfiguration
    from smdebug.trials import Trial

_MOST_STEPS = 10


@click.command("evaluate")
@click.argument("path", shell_complete=complete_place)
@rule_option(
    "Evaluate only this rule: a built-in one, a class in --rule-file, or a set: `default`, `usual` or "
    "`all`; can be repeated."
)
@set_option("Set a parameter; with several rules, prefix the rule's name.")
@rule_file_option()
@rules_option("Use this rules.json, ours or SageMaker's, in place of the one beside the run.")
@default_rules_option
@click.option(
    "--other-run",
    "other_runs",
    shell_complete=complete_place,
    multiple=True,
    metavar="PATH",
    help="Compare with this run.",
)
@click.option(
    "--start-step",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Start at this global step.",
)
@click.option("--end-step", type=click.IntRange(0), metavar="N", help="Stop before this global step.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Use N processes (default: one per core).",
)
@click.option("--all-steps", is_flag=True, help=f"Show every step, not only the first {_MOST_STEPS}.")
@click.option("--reasons", is_flag=True, help="Show why each rule was not checked.")
@attempt_option
@click.option("--short", is_flag=True, help="Show only problems, and how many rules passed.")
@output_options
def command(
    path: str,
    rules: tuple[str, ...],
    settings: tuple[str, ...],
    rule_file: str | None,
    rules_file: str | None,
    no_default_rules: bool,
    other_runs: tuple[str, ...],
    start_step: int,
    end_step: int | None,
    jobs: int | None,
    all_steps: bool,
    reasons: bool,
    attempt: int | None,
    short: bool,
    as_json: bool,
) -> int:
    """Evaluate rules at every saved step of the run at PATH, and show what is wrong with it.

    Findings are folded into problems: causes with their symptoms, what to try, and where to read more.
    The rules are those of the run's rules.json and of --rule-file, and the default rules that suit the run.
    --rule names others instead; sets are `default`, `usual`, five rules of the old library that suit any
    training, and `all`, every one without required parameters. Actions are not run. `smdebug PATH` is
    `smdebug evaluate PATH --short`.

    \b
    Examples:
      smdebug evaluate ./my-run
      smdebug evaluate ./my-run --rule VanishingGradient
      smdebug evaluate ./my-run --rule VanishingGradient --set threshold=1e-6
      smdebug evaluate ./my-run --rule all
      smdebug evaluate s3://bucket/my-run --rules rules.json --json
      smdebug evaluate ./my-run --rule-file my_rule.py
      smdebug evaluate ./my-run --rule SimilarAcrossRuns --other-run ./before

    Exits with 0 if nothing was found, with 1 if something was, and with 3 if a rule failed, part of the run
    could not be read, or no rule had anything to check.
    """
    from smdebug.rules.rule_sets import default_rules
    from smdebug.runs.evaluation.diagnosing import diagnose

    if end_step is not None and end_step <= start_step:
        raise click.UsageError(
            f"No step is left to evaluate: --end-step {end_step} is not above --start-step {start_step}"
        )
    trial = open_path(path, attempt)
    with redirect_stdout(sys.stderr):  # keep what a rule prints out of the answer
        wanted = wanted_rules(
            trial,
            rules,
            settings,
            rule_file,
            rules_file,
            other_runs,
            default=not no_default_rules,
        )
        wanted = [_within(rule, start_step, end_step) for rule in wanted]
        bar = Progress("evaluating", len(wanted) * len(trial.steps()))
        try:
            found = diagnose(trial, wanted, file=rule_file, jobs=jobs, progress=bar.advance)
        finally:
            bar.clear()
    scope = range(start_step, sys.maxsize if end_step is None else end_step)
    compared_with = dict.fromkeys(place for rule in wanted for place in rule.other_trials)
    runs = [trial, *map(open_path, compared_with)]
    gaps = [gap for run in runs for gap in warn_of_unread_files(run, steps=scope)]
    in_short = short or not rules or all(rule.rule in default_rules() for rule in wanted)
    if as_json:
        print_json([{**_as_json(result, found), "left_out": gaps} for result in found.results])
    else:
        print_issues(found.issues)
        for result in found.results:
            if result.has_found and (all_steps or not in_short):
                _print(result, None if all_steps else _MOST_STEPS)
        print_others(found, in_short=in_short, reasons=reasons or all_steps, is_partial=bool(gaps))
    if found.failed or len(found.not_checked) == len(found.results):
        return exit_codes.FAILED
    has_found = any(result.has_found for result in found.results)
    return code_despite(gaps, exit_codes.FOUND if has_found else exit_codes.PASSED)


def _as_json(result: RuleResult, found: Diagnosis) -> dict[str, Any]:
    """Return a rule's result, with the run's issues that it found or of which it found a symptom."""
    issues = [issue.to_dict() for issue in found.issues if result.name in issue.all_rules]
    return {**result.to_dict(), "issues": issues}


def _print(result: RuleResult, most: int | None) -> None:
    print_line(f"{bad('✗')} {result.summary()}")
    shown = result.found[:most]
    for step in shown:
        findings = step.findings or ({"message": "the condition is met"},)
        more = f" (and {step.count - 1} more)" if step.count > 1 else ""
        print_line(f"    step {step.step}: {findings[0]['message']}{more}")
    left = len(result.steps_found) - len(shown)
    if left:
        print_line(faint(f"    … and {left} more steps; --all-steps shows them, --json shows everything"))


def _within(rule: RuleConfiguration, start: int, end: int | None) -> RuleConfiguration:
    from dataclasses import replace

    if end is not None and rule.end_step is not None:
        end = min(end, rule.end_step)
    return replace(
        rule, start_step=max(start, rule.start_step), end_step=rule.end_step if end is None else end
    )


def wanted_rules(
    trial: Trial,
    rules: Sequence[str],
    settings: Sequence[str],
    rule_file: str | None,
    rules_file: str | None,
    other_runs: tuple[str, ...],
    *,
    default: bool = True,
) -> list[RuleConfiguration]:
    """Return the rules that the options name, or else those that judge the run."""
    from dataclasses import replace

    from smdebug.runs.evaluation.choosing import rules_for
    from smdebug.service.rules_file import valid_rules

    if rule_file is not None:
        read_file(rule_file)
    if rules:
        if rules_file is not None:
            raise click.UsageError("--rules cannot be combined with --rule")
        chosen = _named_rules(trial, rules, settings, rule_file)
    else:
        if settings:
            raise click.UsageError("--set requires --rule: name the rule that has the parameter")
        content = None if rules_file is None else valid_rules(read_file(rules_file), file=rules_file)
        chosen = list(rules_for(trial, file=rule_file, rules_file=content, default=default))
    if not other_runs:
        return chosen
    return [
        replace(rule, other_trials=other_runs)  # unlike in rules.json, a local folder is allowed
        if len(chosen) == 1 or _takes_runs(rule.rule, rule_file)
        else rule
        for rule in chosen
    ]


def _named_rules(
    trial: Trial, rules: Sequence[str], settings: Sequence[str], rule_file: str | None
) -> list[RuleConfiguration]:
    """Return the rules of these names, those of sets after the others, with their parameters."""
    from smdebug.rules.rule_sets import SET_NAMES
    from smdebug.runs.evaluation.choosing import rules_for, rules_of_set

    sets = [name for name in rules if name.lower() in SET_NAMES]
    names = [name for name in rules if name not in sets]
    names += [rule for name in sets for rule in rules_of_set(trial, name.lower())]
    names = list(dict.fromkeys(map(_catalog_name, names) if rule_file is None else names))
    given = parameters_of(settings, names)
    return list(rules_for(trial, [{"rule": name, "parameters": given.get(name, {})} for name in names]))


def _catalog_name(name: str) -> str:
    from smdebug.rules.generic import find_rule

    return find_rule(name).name


def _takes_runs(name: str, rule_file: str | None) -> bool:
    from smdebug.rules.construction import accepted_parameters
    from smdebug.runs.evaluation.evaluating import rule_class

    return bool({"other_trial", "other_trials"} & set(accepted_parameters(rule_class(name, rule_file)).names))


def parameters_of(settings: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the parameters that `--set` gives to each of these rules."""
    given: dict[str, dict[str, str]] = {}
    for setting in settings:
        target, equals, value = setting.partition("=")
        if not equals or not target:
            raise click.UsageError(f"--set takes NAME=VALUE, not {setting!r}")
        rule, dot, parameter = target.rpartition(".")
        rule = next((name for name in names if name.lower() == rule.lower()), rule)
        if not dot and len(names) > 1:
            raise click.UsageError(
                f"With several rules, --set needs the rule's name: {names[0]}.{target}={value}"
            )
        if dot and rule not in names:
            raise click.UsageError(f"--set {setting}: {rule} is not one of the rules {', '.join(names)}")
        given.setdefault(rule or names[0], {})[parameter.replace("-", "_")] = value
    return given
