"""`smdebug import`: what other tools have logged, as runs that rules judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.progress import Progress
from smdebug.cli.arguments.completers import complete_folder, complete_place

if TYPE_CHECKING:
    from smdebug.importing import Found, ImportedRun

_FORMATS = ("tensorboard", "wandb", "mlflow", "trainer", "csv", "jsonl", "neptune")
_FOLDER = "imported"
_MOST_SERIES = 12


@click.command("import")
@click.argument("source", shell_complete=complete_place)
@click.argument("run", required=False, shell_complete=complete_folder)
@click.option(
    "--from", "form", type=click.Choice(_FORMATS), help="Read this format instead of recognising it."
)
@click.option("--overwrite", is_flag=True, help="Replace a run that exists.")
@output_options
def command(source: str, run: str | None, form: str | None, overwrite: bool, as_json: bool) -> int:
    """Import what another tool has logged in SOURCE, as a run in the folder RUN.

    SOURCE is a file or folder of TensorBoard, W&B (offline), MLflow, the Trainer of transformers
    (trainer_state.json), Lightning or Keras (csv), neptune-exporter (parquet), or JSON lines. Losses,
    learning rates, metrics and other scalars become series of the run, those of training and validation
    apart, and hyperparameters its configuration. If SOURCE holds several runs, each is imported into a folder
    in RUN. RUN is imported/NAME by default.

    \b
    Examples:
      smdebug import ./runs/Nov22_gpu-7 ./my-run
      smdebug import ./mlruns ./runs
      smdebug import ./wandb/offline-run-20261122_114000-x3k9
      smdebug import ./log.csv ./my-run --overwrite
      smdebug ./my-run

    Exits with 0 if every run was imported, and with 3 if one could not be.
    """
    from smdebug.exceptions import SMDebugError
    from smdebug.importing import find_runs, import_run

    runs = find_runs(source, form)
    done: list[ImportedRun] = []
    failed: list[tuple[Found, str]] = []
    bar = Progress("importing", None)
    try:
        for found in runs:
            place = _place_of(found, run, is_alone=len(runs) == 1)
            try:
                done.append(import_run(found, place, overwrite=overwrite, advance=bar.advance))
            except (SMDebugError, OSError) as error:
                if len(runs) == 1:
                    raise
                failed.append((found, str(error)))
    finally:
        bar.clear()
    if as_json:
        problems = [{"source": str(found.place), "name": found.name, "error": text} for found, text in failed]
        print_json({"imported": [imported.to_dict() for imported in done], "failed": problems})
    else:
        _print(done, failed)
    return exit_codes.FAILED if failed else exit_codes.PASSED


def _place_of(found: Found, run: str | None, *, is_alone: bool) -> str:
    if run is None:
        return f"{_FOLDER}/{found.name}"
    return run if is_alone else f"{run.rstrip('/')}/{found.name}"


def _print(done: list[ImportedRun], failed: list[tuple[Found, str]]) -> None:
    for imported in done:
        values = f"{counted(imported.values, 'value')} of {len(imported.series):,} series"
        print_line(f"{good('✓')} {imported.location}: {values} at {counted(imported.steps, 'step')}")
        print_line(faint(f"    from {imported.found.format}: {imported.found.place}"))
        if len(done) == 1:
            _print_series(imported.series)
        for what, count in imported.left_out.items():
            print_line(f"    not imported: {count:,} × {what}")
    for found, text in failed:
        print_line(f"{bad('✗')} {found.name}: {text}")
    if len(done) == 1:
        print_line(f"judge it with: smdebug {_as_a_place(done[0].location)}")
    elif done:
        print_line(f"judge them with: smdebug RUN, such as smdebug {_as_a_place(done[0].location)}")


def _print_series(series: Any) -> None:
    for name, target in list(series.items())[:_MOST_SERIES]:
        print_line(f"    {name} is {target}")
    if len(series) > _MOST_SERIES:
        print_line(faint(f"    … and {len(series) - _MOST_SERIES} more series; --json shows all of them"))


def _as_a_place(location: str) -> str:
    return location if "/" in location else f"./{location}"
