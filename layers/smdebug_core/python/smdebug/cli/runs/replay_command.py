"""`smdebug replay`: evaluate a rule as it was deployed, at one step of a run."""

from __future__ import annotations

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import Progress
from smdebug.cli.arguments.choice_options import rule_file_option, set_option
from smdebug.cli.arguments.completers import complete_place, complete_rule
from smdebug.cli.arguments.inputs import attempt_option, open_path, read_file
from smdebug.cli.runs.evaluate_command import parameters_of


@click.command("replay")
@click.argument("path", shell_complete=complete_place)
@click.option("--at", type=click.IntRange(0), required=True, metavar="STEP", help="Evaluate at this step.")
@click.option(
    "--rule", required=True, shell_complete=complete_rule, metavar="NAME", help="Evaluate this rule."
)
@set_option("Set a parameter of the rule.")
@rule_file_option("Take the rule from this Python file.")
@attempt_option
@click.option("--pdb", "in_debugger", is_flag=True, help="Stop in Python's debugger where the rule begins.")
@output_options
def command(
    path: str,
    at: int,
    rule: str,
    settings: tuple[str, ...],
    rule_file: str | None,
    attempt: int | None,
    in_debugger: bool,
    as_json: bool,
) -> int:
    """Evaluate a rule at one step of the run at PATH as the deployed rule did when the step was new.

    The rule sees the run as of that step, and has the state that the steps before have left. The answer shows
    its findings and its state before and after.

    \b
    Examples:
      smdebug replay ./my-run --at 720 --rule VanishingGradient
      smdebug replay ./my-run --at 720 --rule MyRule --rule-file my_rule.py
      smdebug replay ./my-run --at 720 --rule MyRule --rule-file my.py --pdb

    Exits with 0, with 1 if the rule found something, and with 3 if it failed or files could not be read.
    """
    from smdebug.backtesting.replaying import RuleDebugger, replay

    if in_debugger and as_json:
        raise click.UsageError("--pdb cannot be combined with --json")
    if rule_file is not None:
        read_file(rule_file)
    given = parameters_of(settings, [rule]).get(rule, {})
    trial = open_path(path, attempt)
    bar = Progress("replaying", len([step for step in trial.steps() if step < at]))
    try:
        debugger = RuleDebugger() if in_debugger else None
        found = replay(trial, at, rule, given, file=rule_file, progress=bar.advance, debugger=debugger)
    finally:
        bar.clear()
    if as_json:
        print_json(found.to_dict())
    else:
        before = counted(found.steps_before, "step")
        print_line(f"{found.rule} at step {at} of {found.run}, after {before}: {found.outcome}")
        if found.sentence:
            print_line(f"  {found.sentence}")
        for finding in found.findings:
            print_line(f"  {bad('✗')} {finding['message']}")
        for name in {**found.state_before, **found.state_after}:
            kept, after = found.state_before.get(name), found.state_after.get(name)
            change = f" → {_shortened(after)}" if after != kept else ""
            print_line(f"  {name}: {_shortened(kept)}{change}")
        if found.left_out:
            print_line(f"  not kept between steps: {', '.join(found.left_out)}")
    gaps = warn_of_unread_files(trial)
    if found.outcome == "failed":
        return exit_codes.FAILED
    has_found = found.findings or found.outcome == "found"
    return code_despite(gaps, exit_codes.FOUND if has_found else exit_codes.PASSED)


def _shortened(value: object, most: int = 100) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"
