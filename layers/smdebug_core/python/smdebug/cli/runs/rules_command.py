"""`smdebug rules`: list the built-in rules and their parameters."""

from __future__ import annotations

from typing import Any

import click

from smdebug.cli.answers.colours import faint, strong
from smdebug.cli.answers.output import (
    output_options,
    print_heading,
    print_json,
    print_line,
    print_table,
)
from smdebug.cli.arguments.completers import complete_rule


@click.command("rules")
@click.argument("name", required=False, shell_complete=complete_rule)
@output_options
def command(name: str | None, as_json: bool) -> None:
    """List the built-in rules, or describe the rule NAME: its parameters, and what to try if it fires.

    \b
    Examples:
      smdebug rules
      smdebug rules VanishingGradient
      smdebug rules --json | jq '.[].name'

    Exits with 0, and with 2 if there is no rule NAME.
    """
    from smdebug.rules.generic import catalog, find_rule
    from smdebug.rules.rule_sets import default_rules

    if name is None:
        entries, default = list(catalog().values()), list(default_rules().values())
        if as_json:
            print_json([_entry(entry) for entry in [*entries, *default]])
            return
        if default:
            print_line(strong("The default set") + ": evaluates runs for which no rules are named")
            print_table(("rule", "detects"), [(entry.name, entry.sentence) for entry in default])
            print_heading("The rules of the original's names")
        print_table(("rule", "detects"), [(entry.name, entry.sentence) for entry in entries])
        print_line()
        print_line(faint("smdebug rules NAME lists the parameters of a rule."))
        return
    from smdebug.rules.rule_sets import documentation_of

    rule = find_rule(name)
    if as_json:
        print_json(_entry(rule))
        return
    print_line(strong(rule.name))
    print_line(rule.sentence)
    if rule.collections:
        print_line(f"Collections: {', '.join(rule.collections)}.")
    if rule.parameters:
        print_heading("Parameters")
        print_table(
            ("parameter", "type", "default", "description"),
            [
                (parameter.name, parameter.type, _default(parameter), parameter.sentence)
                for parameter in rule.parameters
            ],
        )
    loaded = rule.load()
    for cause, texts in loaded.advice.items():
        print_heading(f"What to try{f': {cause}' if cause and len(loaded.advice) > 1 else ''}")
        for text in texts:
            print_line(f"  {text}")
    print_heading("More")
    print_line(f"  {documentation_of(rule.name)}")
    print_heading("Examples")
    print_line(f"  smdebug evaluate ./my-run --rule {rule.name}{_example(rule)}")


def _entry(rule: Any) -> dict[str, Any]:
    from smdebug.rules.rule_sets import DEFAULT, default_rules

    payload = {key: value for key, value in vars(rule).items() if key != "parameters"}
    payload["set"] = DEFAULT if rule.name in default_rules() else None
    payload["parameters"] = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in vars(parameter).items()}
        for parameter in rule.parameters
    ]
    return payload


def _default(parameter: Any) -> str:
    return "required" if parameter.required else "" if parameter.default is None else str(parameter.default)


def _example(rule: Any) -> str:
    given = [parameter for parameter in rule.parameters if parameter.type != "trial"]
    trial = any(parameter.required and parameter.type == "trial" for parameter in rule.parameters)
    numbers = [item for item in given if item.default is not None and item.type in ("float", "int")]
    option = " --other-run ./before" if trial else ""
    return option + (f" --set {numbers[0].name}={numbers[0].default}" if numbers else "")
