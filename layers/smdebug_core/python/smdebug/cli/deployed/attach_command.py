"""`smdebug attach`: add rules to a run."""

from __future__ import annotations

from pathlib import Path

import click

from smdebug.cli.answers.output import output_options, print_json, print_line, print_note
from smdebug.cli.arguments.completers import complete_rule_or_file
from smdebug.cli.arguments.inputs import read_file
from smdebug.cli.arguments.service_options import stack_option, watched_run


@click.command("attach")
@click.argument("run")
@click.argument("rules", shell_complete=complete_rule_or_file)
@click.option("--replace", is_flag=True, help="Replace the run's rules with these.")
@stack_option
@output_options
def command(run: str, rules: str, replace: bool, stack: str | None, as_json: bool) -> None:
    """Add RULES to RUN, from its first step: a rules.json, or the name of a built-in rule.

    A rule replaces one of the same name. The file may have the format of this project, of SageMaker's
    DebugRuleConfigurations, or of tornasole.

    \b
    Examples:
      smdebug attach resnet-50 rules.json
      smdebug attach resnet-50 ExplodingTensor
      smdebug attach resnet-50 rules.json --replace

    Exits with 0 if the rules were added, and with 3 if the run or the debugger cannot be reached.
    """
    from smdebug.cli.answers.rule_warnings import warnings_about
    from smdebug.rules.generic import find_rule
    from smdebug.service.rules_file import parse_rules

    chosen = watched_run(stack, run)
    if rules.isidentifier() and not Path(rules).exists():
        wanted = parse_rules([find_rule(rules).name], file="the rules given")
    else:
        wanted = parse_rules(read_file(rules), file=rules)
    for warning in warnings_about(wanted):
        print_note(warning)
    now = chosen.set_rules(wanted) if replace else chosen.attach(wanted)
    if as_json:
        print_json([rule.to_dict() for rule in now])
        return
    print_line(f"{chosen.location} is watched by {', '.join(rule.name for rule in now) or 'no rule'}")
