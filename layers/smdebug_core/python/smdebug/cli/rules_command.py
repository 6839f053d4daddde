"""`smdebug rules`: the built-in rules, and what they take."""

from __future__ import annotations

from typing import Any

import click

from smdebug.cli.completers import complete_rule
from smdebug.cli.output import (
    faint,
    output_options,
    print_heading,
    print_json,
    print_line,
    print_table,
)


@click.command("rules")
@click.argument("name", required=False, shell_complete=complete_rule)
@output_options
def command(name: str | None, as_json: bool) -> None:
    """List the built-in rules, or tell what the rule NAME looks for and which parameters it takes.

    \b
    Examples:
      smdebug rules
      smdebug rules VanishingGradient
      smdebug rules --json | jq '.[].name'
    """
    from smdebug.rules.generic import catalog, find_rule

    if name is None:
        entries = list(catalog().values())
        if as_json:
            print_json([_entry(one) for one in entries])
            return
        print_table(("rule", "what it looks for"), [(one.name, one.sentence) for one in entries])
        print_line(faint("\nsmdebug rules NAME tells what a rule takes."))
        return
    rule = find_rule(name)
    if as_json:
        print_json(_entry(rule))
        return
    print_line(click.style(rule.name, bold=True))
    print_line(rule.sentence)
    if rule.collections:
        print_line(f"It looks at the collections: {', '.join(rule.collections)}.")
    if rule.parameters:
        print_heading("Parameters")
        print_table(
            ("parameter", "type", "default", "what it is"),
            [(one.name, one.type, _default(one), one.sentence) for one in rule.parameters],
        )
    print_heading("Examples")
    print_line(f"  smdebug evaluate ./my-run --rule {rule.name}{_example(rule)}")


def _entry(rule: Any) -> dict[str, Any]:
    told = {key: value for key, value in vars(rule).items() if key != "parameters"}
    told["parameters"] = [
        {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in vars(one).items()
        }
        for one in rule.parameters
    ]
    return told


def _default(parameter: Any) -> str:
    return (
        "required"
        if parameter.required
        else ""
        if parameter.default is None
        else str(parameter.default)
    )


def _example(rule: Any) -> str:
    given = [one for one in rule.parameters if one.type != "trial"]
    trial = any(one.required and one.type == "trial" for one in rule.parameters)
    numbers = [one for one in given if one.default is not None and one.type in ("float", "int")]
    told = " --other-run ./before" if trial else ""
    return told + (f" --set {numbers[0].name}={numbers[0].default}" if numbers else "")
