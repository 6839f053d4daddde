"""Complete paths and the names of rules."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_place(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete files and folders, as the shell does by default."""
    return [CompletionItem(incomplete, type="file")]


def complete_folder(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete folders."""
    return [CompletionItem(incomplete, type="dir")]


def complete_rule(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of built-in rules, in any case."""
    from smdebug.rules.generic import every_rule

    return [CompletionItem(name) for name in every_rule() if _begins(name, incomplete)]


def complete_rule_or_all(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of built-in rules and of their sets."""
    from smdebug.rules.rule_sets import SET_NAMES

    sets = [CompletionItem(name) for name in SET_NAMES if _begins(name, incomplete)]
    return [*complete_rule(ctx, parameter, incomplete), *sets]


def complete_rule_or_file(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete files and the names of built-in rules; bash offers files if no rule matches."""
    return [
        *complete_place(ctx, parameter, incomplete),
        *complete_rule(ctx, parameter, incomplete),
    ]


def _begins(name: str, incomplete: str) -> bool:
    return name.lower().startswith(incomplete.lower())
