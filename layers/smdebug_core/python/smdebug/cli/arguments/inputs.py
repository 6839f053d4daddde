"""Open the files and runs that a command line names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smdebug.cli.answers.output import print_note
from smdebug.cli.answers.progress import waiting

if TYPE_CHECKING:
    from smdebug.trials import Trial


class FiniteRange(click.FloatRange):
    """A range of numbers that has no NaN, which no bound excludes, and no infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def read_file(file: str) -> bytes:
    """Return the content of the file; a missing or unreadable file is a usage error."""
    path = Path(file).expanduser()
    if not file or not path.exists():
        raise click.UsageError(f"There is no file {file or repr(file)}")
    if path.is_dir():
        raise click.UsageError(f"{file} is a folder, but must be a file")
    try:
        return path.read_bytes()
    except PermissionError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None


def in_an_existing_folder(_ctx: click.Context, _parameter: click.Parameter, place: str | None) -> str | None:
    """Refuse an output file in a folder that does not exist: the name may be misspelt."""
    if place is not None:
        folder = Path(place).expanduser().parent
        if not folder.exists():
            raise click.UsageError(
                f"There is no folder {folder} to write {Path(place).name} to. "
                f"Create it first: mkdir -p {folder}"
            )
    return place


def attempt_option(function: Any) -> Any:
    """Add --attempt to a command that reads a run."""
    return click.option(
        "--attempt",
        type=click.IntRange(0),
        metavar="N",
        help="Read attempt N of a training that was started again; the newest by default.",
    )(function)


def open_path(path: str, attempt: int | None = None) -> Trial:
    """Open the run at that path, and say on stderr which of its attempts is read, if there are several."""
    from smdebug.runs.opening import open_run

    with waiting(f"opening {path}"):
        trial = open_run(path, attempt=attempt)
    attempts = trial.attempts()
    if len(attempts) > 1:
        number = attempts[-1].number if attempt is None else attempt
        print_note(
            f"{trial.path} has {len(attempts)} attempts, this is number {number}: "
            "`smdebug inspect` lists them, --attempt N reads another"
        )
    return trial
