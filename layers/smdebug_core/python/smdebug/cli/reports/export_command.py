"""`smdebug export`: write tensors for TensorBoard or to a file, or send a run to another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.choice_options import tensor_options
from smdebug.cli.arguments.completers import (
    complete_place,
    complete_worker,
)
from smdebug.cli.arguments.inputs import attempt_option, in_an_existing_folder, open_path
from smdebug.cli.reports.queue_export import (
    queue_options,
    refuse_what_names_one_run,
    send_finished_runs,
)
from smdebug.cli.reports.sink_export import SinkRequest, send, sink_options
from smdebug.sinks.sink import KINDS

if TYPE_CHECKING:
    from smdebug.export import Selection
    from smdebug.trials import Trial

_ENDINGS = {"safetensors": ".safetensors", "npz": ".npz", "parquet": ".parquet"}


@click.command("export")
@click.argument("form", type=click.Choice(["tensorboard", *_ENDINGS, *KINDS]))
@click.argument("path", shell_complete=complete_place, required=False)
@click.option(
    "-o",
    "--output",
    callback=in_an_existing_folder,
    shell_complete=complete_place,
    metavar="PLACE",
    help="Write to this file, - for the standard output of lines; for TensorBoard, or with "
    "--queue, to this folder.",
)
@tensor_options
@click.option("--step", "steps", type=int, multiple=True, metavar="N", help="Select a step; can be repeated.")
@click.option("--worker", metavar="NAME", shell_complete=complete_worker, help="Select a worker.")
@click.option("--values", is_flag=True, help="parquet: write values as well as statistics.")
@sink_options
@queue_options
@attempt_option
@output_options
def command(
    form: str,
    path: str | None,
    output: str | None,
    regexes: tuple[str, ...],
    collection: str | None,
    steps: tuple[int, ...],
    worker: str | None,
    values: bool,
    to: str | None,
    into: str | None,
    statistics: tuple[str, ...],
    no_rules: bool,
    queue: str | None,
    once: bool,
    attempt: int | None,
    as_json: bool,
) -> int:
    """Write tensors of the run at PATH in the named format, or send the run to another tool.

    What was measured of tensors, and the scalars of every step, are written for TensorBoard, npz and parquet.
    Other tools (jsonl, prometheus, cloudwatch, otlp, mlflow, wandb, trackio) get its numbers, its problems
    and its diagnosis: its rules are evaluated.

    \b
    Examples:
      smdebug export tensorboard ./my-run -o ./tensorboard
      smdebug export safetensors ./my-run --collection weights --step 900
      smdebug export npz ./my-run --tensors '^gradient/' -o gradients.npz
      smdebug export parquet s3://bucket/my-run -o statistics.parquet
      smdebug export mlflow ./my-run --to http://localhost:5000
      smdebug export jsonl ./my-run -o -
      smdebug export wandb --queue $QUEUE --once

    Exits with 0 if everything was written, and with 3 if part of the run could not be read or sent.
    """
    from smdebug import export
    from smdebug.export import Selection
    from smdebug.runs.tensors import stored_names

    if regexes and collection:
        raise click.UsageError("Use either --tensors or --collection, not both")
    if values and form != "parquet":
        raise click.UsageError("--values requires parquet: the other formats always contain values")
    asked = SinkRequest(form, output, to, into, statistics, no_rules)
    selection = Selection(regexes or None, collection, steps or None, worker, skips_damaged=True)
    if queue is not None:
        refuse_what_names_one_run(path, asked, selection, attempt, as_json=as_json)
        return send_finished_runs(queue, asked, selection, once=once)
    if once:
        raise click.UsageError("--once is for --queue")
    if path is None:
        raise click.UsageError("Name a run, or with --queue the queue of finished runs")
    if form in KINDS:
        return send(open_path(path, attempt), asked, selection, as_json=as_json)
    if to or into or statistics or no_rules:
        raise click.UsageError(f"--to, --into, --statistic and --no-rules are for {', '.join(KINDS)}")
    trial = open_path(path, attempt)
    output = output or _default_output(trial.name, form)
    bar = progress("exporting")
    if form == "tensorboard":
        count = export.export_tensorboard(trial, output, selection, progress=bar)
    elif form == "parquet":
        count = export.export_parquet(trial, output, selection, with_values=values, progress=bar)
    elif form == "npz":
        count = export.export_npz(trial, output, selection, progress=bar)
    else:
        count = export.export_safetensors(trial, output, selection, progress=bar)
    gaps = warn_of_unread_files(
        trial,
        steps=set(selection.steps_of(trial)) if steps else None,
        worker=worker,
        tensors=stored_names(trial, _names_of(trial, selection, form)),
    )
    code = code_despite(gaps, exit_codes.PASSED)
    if as_json:
        print_json({"form": form, "output": output, "values": count, "left_out": gaps})
        return code
    print_line(f"{counted(count, 'value')} written to {output}")
    if form == "tensorboard":
        print_line(f"view them with: tensorboard --logdir {output}")
    return code


def _names_of(trial: Trial, selection: Selection, form: str) -> list[str]:
    """Return the names of all tensors and scalars that were exported."""
    if form == "safetensors":  # it has no place for statistics
        return selection.names(trial)
    measured, scalars = selection.observed_names(trial)
    return [*selection.names(trial, or_observed=True), *measured, *scalars]


def _default_output(name: str, form: str) -> str:
    return f"{name}-tensorboard" if form == "tensorboard" else f"{name}{_ENDINGS[form]}"
