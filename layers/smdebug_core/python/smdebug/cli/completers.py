"""What the shell is told to complete by itself, and the names of rules."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_place(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files and folders, as the shell completes them where no command has a say."""
    return [CompletionItem(incomplete, type="file")]


def complete_folder(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Folders alone."""
    return [CompletionItem(incomplete, type="dir")]


def complete_rule(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of built-in rules that begin so, in whatever case."""
    from smdebug.rules.generic import catalog

    return [CompletionItem(name) for name in catalog() if _begins(name, incomplete)]


def complete_rule_or_all(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The same, and `all`."""
    every = [CompletionItem("all")] if _begins("all", incomplete) else []
    return [*complete_rule(ctx, parameter, incomplete), *every]


def complete_rule_or_file(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The same, or files: bash, which takes either, looks for those where no rule begins so."""
    return [
        *complete_place(ctx, parameter, incomplete),
        *complete_rule(ctx, parameter, incomplete),
    ]


def _begins(name: str, incomplete: str) -> bool:
    return name.lower().startswith(incomplete.lower())
