"""Files that a command writes, and never replaces unasked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from smdebug.cli.arguments.completers import complete_folder

F = TypeVar("F", bound=Callable[..., Any])


def new_files_options(output_help: str) -> Callable[[F], F]:
    """Add `--output`, the folder of the files, and `--force`."""

    def with_options(function: F) -> F:
        function = click.option("--force", is_flag=True, help="Replace existing files.")(function)
        return click.option(
            "-o",
            "--output",
            shell_complete=complete_folder,
            default=".",
            metavar="FOLDER",
            show_default=True,
            help=output_help,
        )(function)

    return with_options


def write_new_files(files: Mapping[Path, str], *, force: bool) -> None:
    """Write all files, or none if some of them exist and `force` is off."""
    existing = [str(path) for path in files if path.exists()]
    if existing and not force:
        raise click.UsageError(f"{' and '.join(existing)} already exist: use --force to replace them")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def configuration_warnings(files: Mapping[str, str]) -> list[str]:
    """Return what is probably misspelt in the `rules.json` among the files, by name."""
    from smdebug.cli.answers.rule_warnings import warnings_about
    from smdebug.service.rules_file import RULES_FILE, parse_rules

    if RULES_FILE not in files:
        return []
    return list(warnings_about(parse_rules(files[RULES_FILE].encode(), file=RULES_FILE)))
