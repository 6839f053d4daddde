"""`smdebug evaluate`: what rules say of a saved run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from smdebug.cli import exit_codes
from smdebug.cli.completers import complete_place, complete_rule_or_all
from smdebug.cli.inputs import open_path, read_file
from smdebug.cli.output import bad, faint, good, output_options, print_json, print_line
from smdebug.cli.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.progress import Progress

if TYPE_CHECKING:
    from smdebug.runs.evaluating import RuleResult
    from smdebug.service.records import RuleConfiguration
    from smdebug.trials import Trial

_MOST_STEPS = 10


@click.command("evaluate")
@click.argument("path", shell_complete=complete_place)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_rule_or_all,
    help="A built-in rule, or a class in --rule-file; can be repeated. `all`: every built-in rule "
    "that needs to be told nothing.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[RULE.]NAME=VALUE",
    help="A parameter of the rule; of one of several rules, with its name in front.",
)
@click.option(
    "--rule-file",
    shell_complete=complete_place,
    metavar="FILE",
    help="A Python file with the rule.",
)
@click.option(
    "--rules",
    "rules_file",
    shell_complete=complete_place,
    metavar="FILE",
    help="A rules.json, ours or SageMaker's. Without any rule: the one beside the run.",
)
@click.option(
    "--other-run",
    "other_runs",
    shell_complete=complete_place,
    multiple=True,
    metavar="PATH",
    help="A run to compare with.",
)
@click.option(
    "--start-step", type=click.IntRange(0), default=0, metavar="N", help="First global step."
)
@click.option("--end-step", type=click.IntRange(0), metavar="N", help="First step to leave out.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (one per core).")
@click.option("--all-steps", is_flag=True, help=f"Tell every step, not the first {_MOST_STEPS}.")
@output_options
def command(
    path: str,
    rules: tuple[str, ...],
    settings: tuple[str, ...],
    rule_file: str | None,
    rules_file: str | None,
    other_runs: tuple[str, ...],
    start_step: int,
    end_step: int | None,
    jobs: int | None,
    all_steps: bool,
    as_json: bool,
) -> int:
    """Let rules look at every saved step of the run at PATH, and tell what they find.

    Several processes share the steps where a rule carries nothing from one step to the next.
    A rule's actions are not taken.

    \b
    Examples:
      smdebug evaluate ./my-run --rule VanishingGradient
      smdebug evaluate ./my-run --rule VanishingGradient --set threshold=1e-6
      smdebug evaluate ./my-run --rule all
      smdebug evaluate s3://bucket/my-run --rules rules.json --json
      smdebug evaluate ./my-run --rule-file my_rule.py
      smdebug evaluate ./my-run --rule SimilarAcrossRuns --other-run ./before

    Ends with 0 if nothing was found, with 1 if something was, and with 3 if a rule failed or only a part of
    the run could be read.
    """
    from smdebug.runs.evaluating import evaluate

    trial = open_path(path)
    with redirect_stdout(sys.stderr):  # what a rule prints is not among the answers
        wanted = wanted_rules(trial, rules, settings, rule_file, rules_file, other_runs)
        wanted = [_within(one, start_step, end_step) for one in wanted]
        bar = Progress("evaluating", len(wanted) * len(trial.steps()))
        try:
            results = evaluate(trial, wanted, file=rule_file, jobs=jobs, progress=bar.advance)
        finally:
            bar.clear()
    asked_for = range(start_step, sys.maxsize if end_step is None else end_step)
    compared_with = dict.fromkeys(place for one in wanted for place in one.other_trials)
    looked_at = [trial, *map(open_path, compared_with)]
    gaps = [gap for one in looked_at for gap in warn_of_unread_files(one, steps=asked_for)]
    if as_json:
        print_json([{**one.to_dict(), "left_out": gaps} for one in results])
    else:
        for one in results:
            _print(one, None if all_steps else _MOST_STEPS)
    if any(one.error for one in results):
        return exit_codes.FAILED
    found = any(one.has_found for one in results)
    return code_despite(gaps, exit_codes.FOUND if found else exit_codes.PASSED)


def _print(result: RuleResult, most: int | None) -> None:
    shown = result.found[:most]
    if result.has_found or result.error:
        mark = bad("✗")
    else:
        mark = good("✓") if result.has_seen else faint("–")
    print_line(f"{mark} {result.summary()}")
    for one in shown:
        findings = one.findings or ({"message": "the condition is met"},)
        more = f" (and {one.count - 1} more)" if one.count > 1 else ""
        print_line(f"    step {one.step}: {findings[0]['message']}{more}")
    left = len(result.steps_found) - len(shown)
    if left:
        print_line(
            faint(f"    … and {left} more steps; --all-steps tells them, --json tells everything")
        )


def wanted_rules(
    trial: Trial,
    rules: Sequence[str],
    settings: Sequence[str],
    rule_file: str | None,
    rules_file: str | None,
    other_runs: tuple[str, ...],
) -> list[RuleConfiguration]:
    """The rules that the options name, or else those of the run's rules.json."""
    from smdebug.rules.loading import rules_in_file
    from smdebug.runs.evaluating import configurations
    from smdebug.service.rules_file import RULES_FILE, parse_rules

    if rules_file is not None:
        if rules or settings:
            raise click.UsageError(
                "--rules names the rules and what they take: leave out --rule and --set"
            )
        return list(parse_rules(read_file(rules_file), file=rules_file))
    names = list(rules)
    if rule_file is not None:
        read_file(rule_file)
    if rule_file is not None and not names:
        names = list(rules_in_file(rule_file))
    if not names:
        if settings:
            raise click.UsageError("--set goes with --rule: which rule is meant?")
        if not trial.storage.exists(RULES_FILE):
            raise click.UsageError(
                f"Which rules? {trial.path} has no {RULES_FILE}, so name them: --rule NAME, or --rule all. "
                "`smdebug rules` lists them."
            )
        return list(configurations(trial, None))
    if "all" in names:
        names = [name for name in names if name != "all"] + _that_need_nothing(trial)
    names = list(dict.fromkeys(map(_as_named, names) if rule_file is None else names))
    given = _settings(settings, names)
    entries = [{"rule": name, "parameters": given.get(name, {})} for name in names]
    wanted = configurations(trial, entries)
    if not other_runs:
        return list(wanted)
    from dataclasses import replace

    return [
        replace(one, other_trials=other_runs)  # any place will do here, a folder too
        if len(wanted) == 1 or _takes_runs(one.rule, rule_file)
        else one
        for one in wanted
    ]


def _as_named(name: str) -> str:
    from smdebug.rules.generic import find_rule

    return find_rule(name).name


def _takes_runs(name: str, rule_file: str | None) -> bool:
    from smdebug.rules.construction import accepted_parameters
    from smdebug.runs.evaluating import rule_class

    return bool(
        {"other_trial", "other_trials"}
        & set(accepted_parameters(rule_class(name, rule_file)).names)
    )


def _that_need_nothing(trial: Trial) -> list[str]:
    """The built-in rules that can be made without a parameter."""
    from smdebug.exceptions import SMDebugError
    from smdebug.rules.construction import make_rule
    from smdebug.rules.generic import catalog

    found = []
    for name, entry in catalog().items():
        try:
            make_rule(entry.load(), trial, {})
        except SMDebugError:
            continue
        found.append(name)
    return found


def _settings(settings: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    given: dict[str, dict[str, str]] = {}
    for setting in settings:
        told, equals, value = setting.partition("=")
        if not equals or not told:
            raise click.UsageError(f"--set takes NAME=VALUE, not {setting!r}")
        rule, dot, parameter = told.rpartition(".")
        rule = next((name for name in names if name.lower() == rule.lower()), rule)
        if not dot and len(names) > 1:
            raise click.UsageError(
                f"Of which rule is {told}? With several rules, write {names[0]}.{told}={value}"
            )
        if dot and rule not in names:
            raise click.UsageError(
                f"--set {setting}: {rule} is not among the rules: {', '.join(names)}"
            )
        given.setdefault(rule or names[0], {})[parameter.replace("-", "_")] = value
    return given


def _within(rule: RuleConfiguration, start: int, end: int | None) -> RuleConfiguration:
    from dataclasses import replace

    if end is not None and rule.end_step is not None:
        end = min(end, rule.end_step)
    return replace(
        rule, start_step=max(start, rule.start_step), end_step=rule.end_step if end is None else end
    )
