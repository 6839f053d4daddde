"""What the shell is told to complete by itself."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_place(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files and folders, as the shell completes them where no command has a say."""
    return [CompletionItem(incomplete, type="file")]
