"""Options of several commands that choose what they work on: rules, and tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from smdebug.cli.arguments.completers import (
    complete_collection,
    complete_place,
    complete_rule_or_all,
    complete_tensor,
)

F = TypeVar("F", bound=Callable[..., Any])


def rule_option(help: str) -> Callable[[F], F]:
    """Add `--rule`, which can be repeated."""
    return click.option(
        "--rule",
        "rules",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_rule_or_all,
        help=help,
    )


def set_option(help: str) -> Callable[[F], F]:
    """Add `--set`, which sets a parameter of a rule and can be repeated."""
    return click.option("--set", "settings", multiple=True, metavar="[RULE.]NAME=VALUE", help=help)


def rule_file_option(help: str = "Add the rules that this Python file defines.") -> Callable[[F], F]:
    """Add `--rule-file`, one file that may define several rules."""
    return single_option("--rule-file", shell_complete=complete_place, metavar="FILE", help=help)


def single_option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Add an option with one value. Given twice, it is refused: one of them would be ignored."""
    return click.option(*names, multiple=True, callback=_only, **attributes)


def _only(_ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        takes = f"{parameter.opts[0]} takes one {parameter.metavar}"
        raise click.UsageError(f"{takes}, not {len(values)}: {', '.join(values)}")
    return values[0] if values else None


def default_rules_option(function: F) -> F:
    """Add `--no-default-rules`."""
    return click.option(
        "--no-default-rules", is_flag=True, help="Evaluate only the rules of the run and its files."
    )(function)


def rules_option(help: str) -> Callable[[F], F]:
    """Add `--rules`, a file of configurations."""
    return click.option("--rules", "rules_file", shell_complete=complete_place, metavar="FILE", help=help)


def tensor_options(function: F) -> F:
    """Add `--tensors` and `--collection`."""
    function = click.option(
        "--collection",
        metavar="NAME",
        shell_complete=complete_collection,
        help="Select the tensors of a collection.",
    )(function)
    return click.option(
        "--tensors",
        "regexes",
        multiple=True,
        metavar="REGEX",
        shell_complete=complete_tensor,
        help="Select tensors by name.",
    )(function)
